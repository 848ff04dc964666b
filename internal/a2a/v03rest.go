package a2a

// v03RESTDialect is version 0.3 as its HTTP+JSON binding writes it.
var v03RESTDialect = dialect{}
