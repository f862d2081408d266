package dashboard_test

import (
	"maps"
	"sync"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
)

// memory keeps samples for queries. Targets may add samples at the same time, but not during a
// query.
type memory struct {
	mutex  sync.Mutex
	series map[model.Fingerprint]kept
}

type kept struct {
	metric  labels.Labels
	samples *chunkenc.XORChunk
	end     chunkenc.Appender
}

func (m *memory) add(at time.Time, added model.Metric, found model.Vector) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for _, sample := range found {
		maps.Copy(sample.Metric, added)
		id := sample.Metric.Fingerprint()
		if _, known := m.series[id]; !known {
			m.series[id] = newKept(sample.Metric)
		}
		m.series[id].end.Append(0, at.UnixMilli(), float64(sample.Value))
	}
}

func newKept(metric model.Metric) kept {
	pairs := make(map[string]string, len(metric))
	for name, value := range metric {
		pairs[string(name)] = string(value)
	}
	samples := chunkenc.NewXORChunk()
	end, err := samples.Appender()
	if err != nil {
		panic(err) // only a chunk with bytes in it can be broken
	}
	return kept{labels.FromMap(pairs), samples, end}
}

// Querier returns all samples: the engine leaves out what it did not ask for.
func (m *memory) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints, wanted ...*labels.Matcher) storage.SeriesSet {
		found := &seriesSet{SeriesSet: storage.EmptySeriesSet()}
		for _, series := range m.series {
			if matches(series.metric, wanted) {
				found.rest = append(found.rest, &storage.SeriesEntry{Lset: series.metric, SampleIteratorFn: series.samples.Iterator})
			}
		}
		return found
	}}, nil
}

func matches(metric labels.Labels, wanted []*labels.Matcher) bool {
	for _, matcher := range wanted {
		if !matcher.Matches(metric.Get(matcher.Name)) {
			return false
		}
	}
	return true
}

// seriesSet iterates over series; what it embeds has no errors and no warnings.
type seriesSet struct {
	storage.SeriesSet
	current storage.Series
	rest    []storage.Series
}

func (s *seriesSet) Next() bool {
	if len(s.rest) == 0 {
		return false
	}
	s.current, s.rest = s.rest[0], s.rest[1:]
	return true
}

func (s *seriesSet) At() storage.Series { return s.current }
