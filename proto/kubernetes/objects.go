package main

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand"
	"os"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/util/intstr"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Fills values with random ones, of the kinds that the API server accepts where that changes the form.
type filler struct {
	*rand.Rand
	sparse bool
}

func (f filler) fill(v reflect.Value, depth int) {
	if f.sparse && depth > 1 && f.Intn(3) > 0 {
		return
	}
	switch v.Interface().(type) {
	case meta.TypeMeta:
		return
	case meta.Time:
		v.Set(reflect.ValueOf(meta.Unix(f.Int63n(4e9), 0)))
		return
	case meta.MicroTime:
		v.Set(reflect.ValueOf(meta.NewMicroTime(time.Unix(f.Int63n(4e9), f.Int63n(1e6)*1000))))
		return
	case meta.Duration:
		v.Set(reflect.ValueOf(meta.Duration{Duration: time.Duration(f.Int63n(1e14) - 1e12)}))
		return
	case resource.Quantity:
		texts := []string{"100m", "1Gi", "2", "1500M", "0", "12e6", "-3", "1.5"}
		v.Set(reflect.ValueOf(resource.MustParse(texts[f.Intn(len(texts))])))
		return
	case intstr.IntOrString:
		if f.Intn(2) == 0 {
			v.Set(reflect.ValueOf(intstr.FromInt32(f.Int31() - 1<<30)))
		} else {
			v.Set(reflect.ValueOf(intstr.FromString("25%")))
		}
		return
	case meta.FieldsV1:
		v.Set(reflect.ValueOf(meta.FieldsV1{Raw: []byte(`{"f:metadata":{"f:labels":{".":{}}}}`)}))
		return
	case runtime.RawExtension:
		v.Set(reflect.ValueOf(runtime.RawExtension{Raw: []byte(`{"apiVersion":"example.com/v1","kind":"Any","n":1.5}`)}))
		return
	case apiextensions.JSON:
		v.Set(reflect.ValueOf(apiextensions.JSON{Raw: []byte(`{"a":[1,"two",null]}`)}))
		return
	case apiextensions.JSONSchemaPropsOrBool:
		v.Set(reflect.ValueOf(apiextensions.JSONSchemaPropsOrBool{Allows: f.Intn(2) == 0}))
		return
	case apiextensions.JSONSchemaPropsOrArray:
		one := apiextensions.JSONSchemaProps{Type: "string"}
		if f.Intn(2) == 0 {
			v.Set(reflect.ValueOf(apiextensions.JSONSchemaPropsOrArray{Schema: &one}))
		} else {
			v.Set(reflect.ValueOf(apiextensions.JSONSchemaPropsOrArray{JSONSchemas: []apiextensions.JSONSchemaProps{one}}))
		}
		return
	case apiextensions.JSONSchemaPropsOrStringArray:
		v.Set(reflect.ValueOf(apiextensions.JSONSchemaPropsOrStringArray{Property: []string{"a", "b"}}))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.Type().Elem() == reflect.TypeOf(apiextensions.JSONSchemaProps{}) && depth > 9 {
			return
		}
		made := reflect.New(v.Type().Elem())
		f.fill(made.Elem(), depth+1)
		v.Set(made)
	case reflect.String:
		texts := []string{"web", "a<b>&c", "Größe 😀", "x\u2028y\x01", "v1", "kube-system"}
		v.SetString(texts[f.Intn(len(texts))])
	case reflect.Bool:
		v.SetBool(f.Intn(2) == 0)
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Int16, reflect.Int8:
		v.SetInt(int64(int32(f.Uint32())))
		if v.Kind() == reflect.Int64 {
			v.SetInt(int64(f.Uint64()))
		}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(f.Intn(200)))
	case reflect.Float64:
		v.SetFloat(float64(f.Intn(1000)) / 8)
	case reflect.Slice:
		count := 1 + f.Intn(2)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			raw := make([]byte, f.Intn(9))
			f.Read(raw)
			v.SetBytes(raw)
			return
		}
		if depth > 9 {
			count = 0
		}
		made := reflect.MakeSlice(v.Type(), count, count)
		for i := range count {
			f.fill(made.Index(i), depth+1)
		}
		v.Set(made)
	case reflect.Map:
		made := reflect.MakeMap(v.Type())
		for i := range 1 + f.Intn(2) {
			if depth > 9 {
				break
			}
			value := reflect.New(v.Type().Elem()).Elem()
			f.fill(value, depth+1)
			made.SetMapIndex(reflect.ValueOf(fmt.Sprint("key", i)).Convert(v.Type().Key()), value)
		}
		v.Set(made)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Tag.Get("protobuf") != "" {
				f.fill(v.Field(i), depth+1)
			}
		}
	}
}

// Writes, for each kind, an empty object, one with a third of its fields, and one with all, as lines of JSON: the value
// that the API server stores, in base64, and the JSON of what is read from that.
func writeObjects() {
	for _, one := range kinds() {
		for _, size := range []string{"empty", "sparse", "full"} {
			made := reflect.New(one.Type)
			seed := fnv.New64a()
			seed.Write([]byte(one.GroupVersionKind.String() + size))
			fill := filler{rand.New(rand.NewSource(int64(seed.Sum64()))), size == "sparse"}
			if size != "empty" {
				fill.fill(made.Elem(), 0)
			}
			object := made.Interface().(runtime.Object)
			object.GetObjectKind().SetGroupVersionKind(one.GroupVersionKind)
			var stored bytes.Buffer
			check(protobuf.NewSerializer(nil, nil).Encode(object, &stored))
			var unknown runtime.Unknown
			check(unknown.Unmarshal(stored.Bytes()[4:]))
			read := reflect.New(one.Type)
			check(read.Interface().(interface{ Unmarshal([]byte) error }).Unmarshal(unknown.Raw))
			read.Interface().(runtime.Object).GetObjectKind().SetGroupVersionKind(one.GroupVersionKind)
			text, err := json.Marshal(read.Interface())
			check(err)
			line, err := json.Marshal(map[string]any{
				"kind": one.GroupVersionKind.Kind, "apiVersion": one.GroupVersion().String(), "size": size,
				"stored": base64.StdEncoding.EncodeToString(stored.Bytes()), "json": string(text),
			})
			check(err)
			fmt.Fprintln(os.Stdout, string(line))
		}
	}
}
