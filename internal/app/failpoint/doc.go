// Package failpoint makes a replica die at an instruction, as if by kill -9, or pause there. It
// does so only in a build with the tag failpoints. In all others its functions return what they
// get.
//
// Fault campaigns arm a failpoint at the operations port:
//
//	POST /failpoints/{name}?skip=N&pause=4s
//
// skip lets so many pass first; without pause the process dies. A failpoint disarms itself when it
// fires; GET answers 204 or 404, whether it is still armed, and DELETE /failpoints disarms all.
package failpoint
