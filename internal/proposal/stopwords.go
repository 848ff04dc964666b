package proposal

import "strings"

// stopWords are too common to indicate the subject of a text.
var stopWords = func() map[string]bool {
	set := map[string]bool{}
	for w := range strings.FieldsSeq(`
		about after again all also and any are because been before being between both but can cannot could did does doing
		don done down during each every few for from further get gets getting give given has have having her here hers him
		his how into its itself just let like made make makes many may might more most much must new nor not now off often
		once one only other our out over own per same shall she should since some still such than that the their them then
		there these they this those through too two under until upon use used uses using very via want was way well were
		what when where whether which while who whom why will with within without would yet you your`) {
		set[w] = true
	}
	return set
}()
