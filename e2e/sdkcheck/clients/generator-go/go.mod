module parley.example/sdkcheck

go 1.26.0

require (
	golang.org/x/oauth2 v0.37.0
	gopkg.in/validator.v2 v2.0.1
)
