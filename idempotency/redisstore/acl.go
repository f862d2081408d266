package redisstore

// ACLRules are the fewest that a server's user needs for a [Store] with
// [DefaultPrefix] (https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/):
//
//	ACL SETUSER shop on >password <rules>
//
// In a cluster it needs [ACLClusterRules], too, and in a database with a number
// other than 0 +select; see also [ACLSentinelRules].
const ACLRules = "resetkeys resetchannels -@all ~" + DefaultPrefix + "* &" + DefaultPrefix + "changes " +
	"+set +get +del +eval +evalsha +publish +subscribe +ping +info"

// ACLClusterRules are those that come with a cluster: asking where keys are, and
// asking for one that is on its way.
const ACLClusterRules = "+cluster|slots +asking"

// ACLSentinelRules are the fewest for the user of the Sentinels, whom the URL
// names by sentinel_username.
const ACLSentinelRules = "resetkeys resetchannels -@all &+switch-master &+replica-reconf-done " +
	"+sentinel|get-master-addr-by-name +sentinel|sentinels +subscribe +ping"
