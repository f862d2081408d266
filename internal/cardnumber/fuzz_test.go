package cardnumber

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
)

// FuzzCardNumber: no text hides a card number that stands by itself beside it.
func FuzzCardNumber(f *testing.F) {
	for _, text := range []string{"", "4242 4242", "1", "0.", uuid.NewString(), "tok_", "\xff", "４２４２", "-", "12345678-1234-1234-1234-"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		require.True(t, Contains(text+"\n| 4242424242424242 |\n"))
		require.True(t, Contains("| 4242 4242 4242 4242 |\n"+text))
	})
}
