package main

import (
	"bufio"
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Types with a JSON of their own: the reader of each is written by hand.
var special = map[reflect.Type]string{
	reflect.TypeOf(meta.Time{}):                                  "time",
	reflect.TypeOf(meta.MicroTime{}):                             "microtime",
	reflect.TypeOf(meta.Duration{}):                              "duration",
	reflect.TypeOf(meta.FieldsV1{}):                              "raw",
	reflect.TypeOf(resource.Quantity{}):                          "quantity",
	reflect.TypeOf(runtime.RawExtension{}):                       "raw",
	reflect.TypeOf(intstr.IntOrString{}):                         "intorstring",
	reflect.TypeOf(apiextensions.JSON{}):                         "raw",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrArray{}):       "propsorarray",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrBool{}):        "propsorbool",
	reflect.TypeOf(apiextensions.JSONSchemaPropsOrStringArray{}): "propsorstrings",
}

var numbered = regexp.MustCompile(`^\w+,(\d+),`)

// Collects the messages that a message refers to.
type messages struct {
	names map[reflect.Type]string
	order []reflect.Type
	taken map[string]bool
}

// The short name of a message.
func (m *messages) name(message reflect.Type) string {
	name, known := m.names[message]
	if !known {
		parts := strings.Split(message.PkgPath(), "/")
		group := parts[len(parts)-2]
		name = group + "." + message.Name()
		for m.taken[name] {
			name += "_" + parts[len(parts)-1]
		}
		m.taken[name] = true
		m.names[message] = name
		m.order = append(m.order, message)
	}
	return name
}

// The word for the type of a field; see etcd_aio/kubernetes/messages.py.
func (m *messages) word(t reflect.Type) string {
	if word, ok := special[t]; ok {
		return word
	}
	switch t.Kind() {
	case reflect.Pointer:
		return m.word(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "bool"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Uint16,
		reflect.Uint32:
		return "int"
	case reflect.Float64:
		return "double"
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		if t.Name() != "" { // such as ExtraValue, a message with one list of strings
			if t.Elem().Kind() == reflect.String {
				return "strings"
			}
			return "[" + m.word(t.Elem())
		}
		return "[" + m.word(t.Elem())
	case reflect.Map:
		return "{" + m.word(t.Elem())
	case reflect.Struct:
		return m.name(t)
	}
	panic(fmt.Sprint("no word for ", t))
}

// The fields of a message, and those of the messages whose JSON is that of the message around them.
func (m *messages) fields(message reflect.Type) []string {
	var found []string
	for i := range message.NumField() {
		field := message.Field(i)
		tag := numbered.FindStringSubmatch(field.Tag.Get("protobuf"))
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		if tag == nil {
			continue // apiVersion and kind, which are in the envelope
		}
		if name == "-" {
			continue
		}
		flags := ""
		word := m.word(field.Type)
		if field.Anonymous && name == "" {
			flags += "<" // inline
		} else if name == "" {
			name = field.Name
		}
		if strings.Contains(options, "omitempty") {
			flags += "?"
		}
		if strings.Contains(options, "omitzero") {
			flags += "!"
		}
		if field.Type.Kind() == reflect.Pointer {
			flags += "*"
		}
		found = append(found, fmt.Sprintf("%s %s%s %s", tag[1], name, flags, word))
	}
	return found
}

func writeSchema() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	found := messages{names: map[reflect.Type]string{}, taken: map[string]bool{}}
	var roots []string
	for _, one := range kinds() {
		version := one.GroupVersion().String()
		roots = append(roots, fmt.Sprintf("%s %s=%s", version, one.GroupVersionKind.Kind, found.name(one.Type)))
	}
	found.name(reflect.TypeOf(apiextensions.JSONSchemaProps{}))
	var lines []string
	for at := 0; at < len(found.order); at++ {
		message := found.order[at]
		lines = append(lines, found.names[message]+":"+strings.Join(found.fields(message), ","))
	}
	slices.Sort(lines)
	for _, line := range append(roots, lines...) {
		fmt.Fprintln(out, line)
	}
}
