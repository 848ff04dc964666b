claude mcp add --transport http parley http://127.0.0.1:8080/mcp --header "Authorization: Bearer $PARLEY_KEY"
