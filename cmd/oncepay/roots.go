package main

// The image has no files but the programs, so it has no certificate authorities either. The roots
// of Mozilla are part of the program, and count where the machine has none (x509.SetFallbackRoots).
import _ "golang.org/x/crypto/x509roots/fallback"
