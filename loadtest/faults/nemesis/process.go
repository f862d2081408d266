package nemesis

// process hurts a service as a whole.
func process(hurt, service, heal string) func(*Scheduler) *Fault {
	return func(s *Scheduler) *Fault {
		return &Fault{victims: []string{service}, inject: s.do(hurt, service), heal: s.do(heal, service)}
	}
}

func (s *Scheduler) kill() *Fault {
	r := s.replica()
	return &Fault{Name: "kill " + r, rank: 1, victims: []string{r}, inject: s.do("kill", r), heal: s.do("start", r)}
}

func (s *Scheduler) pauseReplica() *Fault {
	r := s.replica()
	return &Fault{Name: "pause " + r + " past its lease", Hold: pastLease, rank: 1, victims: []string{r}, inject: s.do("pause", r), heal: s.do("resume", r)}
}
