// Package console is the page that shows the local deployment at work, and breaks it by buttons, to
// show that no effect happens twice. It is a client like any other: it uses the public API,
// the provider's audit list and the switchboard, and reads the tiers of one key (package tiers).
// For the sequence diagrams the replicas send it their traces.
//
// Data flows one way: buttons and traces change the console's state, the page is rendered from it,
// and sent to each open browser whenever it has changed.
//
// `stack watch` is another client of the same shop, for a terminal: see [Watch].
//
// It is for development alone: it binds loopback, and has no users and no passwords.
package console
