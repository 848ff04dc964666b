# Owns one PostgreSQL: makes its data folder, runs it, and ends it when standard
# input closes, which happens when the process that started us ends in any way.
# Arguments: the folder of the binaries, the folder to use, then options of postgres.
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
# is enough: nobody will read this data again.
pid=$(head -n 1 "$dir/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
# Still in initdb: the server it is about to start must not outlive us.
[ -n "$pid" ] || kill -TERM $! 2>/dev/null
wait
rm -rf "$dir"
