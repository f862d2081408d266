package idempotency_test

import (
	"bytes"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/oncepay/oncepay/idempotency"
)

// TestHandler_LeavesNoFilesOfAForm: net/http removes those of its own request, and the handler has
// a copy of it.
func TestHandler_LeavesNoFilesOfAForm(t *testing.T) {
	t.Parallel()
	for name, after := range map[string]func(){"answers": func() {}, "panics": func() { panic(http.ErrAbortHandler) }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var upload *multipart.FileHeader
			b := setup(t, idempotency.Policy{}, func(_ http.ResponseWriter, r *http.Request) {
				require.NoError(t, r.ParseMultipartForm(1))
				upload = r.MultipartForm.File["photo"][0]
				file, err := upload.Open()
				require.NoError(t, err)
				require.NoError(t, file.Close())
				after()
			})
			var body bytes.Buffer
			form := multipart.NewWriter(&body)
			part, err := form.CreateFormFile("photo", "photo.png")
			require.NoError(t, err)
			write(part, "larger than the handler's memory for files")
			require.NoError(t, form.Close())
			r := request(t, "key", body.String())
			r.Header.Set("Content-Type", form.FormDataContentType())
			func() {
				defer func() { _ = recover() }()
				b.send(r)
			}()
			_, err = upload.Open()
			require.ErrorIs(t, err, fs.ErrNotExist)
		})
	}
}

// TestHandler_TellsThePatternOutside: metrics and traces further out name the route by it.
func TestHandler_TellsThePatternOutside(t *testing.T) {
	t.Parallel()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", func(http.ResponseWriter, *http.Request) {})
	r := request(t, "key", "")
	newShared(idempotency.Policy{}).Handler(mux).ServeHTTP(httptest.NewRecorder(), r)
	require.Equal(t, "POST /orders", r.Pattern)
}
