package deployment

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// buildProgress reads what `go build -v` prints: a line for each module that is downloaded and for
// each package that is compiled. It prints how many there were, every slowStep.
type buildProgress struct {
	step              Step
	told              time.Time
	line              bytes.Buffer
	modules, packages int
	// complaints are all other lines.
	complaints strings.Builder
}

func (p *buildProgress) Write(printed []byte) (int, error) {
	for _, b := range printed {
		p.line.WriteByte(b)
		if b == '\n' {
			p.read(p.line.String())
			p.line.Reset()
		}
	}
	return len(printed), nil
}

func (p *buildProgress) read(line string) {
	switch {
	case strings.HasPrefix(line, "go: downloading "):
		p.modules++
	case !strings.Contains(line, " "):
		p.packages++
	default:
		p.complaints.WriteString(line)
	}
	if time.Since(p.told) >= slowStep {
		p.told = time.Now()
		p.step.Going(fmt.Sprintf("%d modules downloaded, %d packages compiled", p.modules, p.packages))
	}
}
