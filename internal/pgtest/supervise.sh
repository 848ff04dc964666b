# Runs one PostgreSQL in a new data directory, and stops it when standard input closes,
# which happens when the parent process ends in any way.
# Arguments: the directory of the binaries, the directory to use, then options of postgres.
bin=$1 dir=$2
shift 2
umask 077
{
	"$bin/initdb" --pgdata="$dir/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C --no-sync &&
		"$bin/postgres" -D "$dir/data" "$@"
	touch "$dir/failed"
} >"$dir/log" 2>&1 </dev/null &

cat >/dev/null

# The first line of this file is the server's process id. An immediate shutdown
# is enough: the data is not used again.
pid=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
# Still in initdb: the server that it is about to start must not outlive this script.
[ -n "$pid" ] || kill -TERM $! 2>/dev/null
wait
rm -rf "$dir"
