base=http://127.0.0.1:8080/api/v1/agents/scout
post() {
  curl -fsS -m 60 -H "Authorization: Bearer $PARLEY_KEY" -H 'Content-Type: application/json' -d "$2" "$base/$1"
}
while claim=$(post claim '{"worker":"curl","wait_seconds":20}'); do
  lease=$(printf '%s' "$claim" | sed -n 's/.*"lease":"\([^"]*\)".*/\1/p')
  [ -n "$lease" ] || continue
  post "leases/$lease" '{"status":"completed","artifacts":[{"type":"text","parts":[{"type":"text","text":"Hello from curl"}]}]}'
done
