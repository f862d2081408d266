package redisstore

// ACLRules are all that a server's user needs for a [Store] with [DefaultPrefix]
// (https://redis.io/docs/latest/operate/oss_and_stack/management/security/acl/):
//
//	ACL SETUSER shop on >password <rules>
//
// In a cluster the user also needs [ACLClusterRules], and in a database other than 0 +select; see
// also [ACLSentinelRules].
const ACLRules = "resetkeys resetchannels -@all ~" + DefaultPrefix + "* &" + DefaultPrefix + "changes " +
	"+set +get +del +eval +evalsha +publish +subscribe +ping +info"

// ACLClusterRules are needed in a cluster in addition: to ask where keys are, and for a key that
// is moving to another node.
const ACLClusterRules = "+cluster|slots +asking"

// ACLSentinelRules are all that the user of the Sentinels needs, who is sentinel_username in the
// URL.
const ACLSentinelRules = "resetkeys resetchannels -@all &+switch-master &+replica-reconf-done " +
	"+sentinel|get-master-addr-by-name +sentinel|sentinels +subscribe +ping"
