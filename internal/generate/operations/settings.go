package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// setting is a field of Config.
type setting struct{ field, variable, value, comment string }

// readSettings returns the fields of Config in their order.
func readSettings(name string) (settings []setting, err error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	fields := file.Scope.Lookup("Config").Decl.(*ast.TypeSpec).Type.(*ast.StructType).Fields
	for _, f := range fields.List {
		literal, err := strconv.Unquote(f.Tag.Value)
		if err != nil {
			return nil, err
		}
		tag := reflect.StructTag(literal)
		settings = append(settings, setting{f.Names[0].Name, tag.Get("env"), tag.Get("envDefault"), f.Doc.Text()})
	}
	return settings, nil
}

// verb begins most comments after the field's name, and is left out in the table.
var verb = regexp.MustCompile(`^\w+ (is|are) `)

// settingsTable is the settings in Markdown.
func settingsTable(settings []setting) string {
	var out strings.Builder
	out.WriteString("| variable | default | meaning |\n|---|---|---|\n")
	for _, s := range settings {
		meaning := strings.Join(strings.Fields(s.comment), " ")
		if verb.MatchString(meaning) {
			meaning = verb.ReplaceAllString(meaning, "")
		} else {
			meaning = strings.TrimPrefix(meaning, s.field+" ")
		}
		for _, other := range settings {
			meaning = regexp.MustCompile(`\b`+other.field+`\b`).ReplaceAllString(meaning, "`"+other.variable+"`")
		}
		value := ""
		if s.value != "" {
			value = "`" + s.value + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", s.variable, value, strings.ToUpper(meaning[:1])+meaning[1:])
	}
	return out.String()
}
