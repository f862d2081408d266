// Package localserver starts and stops private servers on this machine: PostgreSQL, Redis, and any
// other program. Each is a process in a session of its own, known by its pid and start time, on a
// loopback port that the kernel gives to no client's connection meanwhile. The local deployment
// (internal/stack) and the tests' servers (internal/testenv) are made of these.
package localserver
