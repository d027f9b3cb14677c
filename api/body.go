package api

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
)

// Read sets the fields of a struct from the members of the object, by the tags that package own/schema describes. A
// member that was not sent leaves its field unchanged; null sets the field to its value in null. An unknown member is a
// fault, because a misspelled one would otherwise go unnoticed; so is a missing one that is not optional. The error
// holds all faults, up to maxFaults.
func Read[T any](o Object, to *T, null T) error {
	return o.read(reflect.ValueOf(to).Elem(), reflect.ValueOf(null))
}

func (o Object) read(to, null reflect.Value) error {
	var fields []reflect.StructField
	var names []string
	for _, f := range reflect.VisibleFields(to.Type()) {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields, names = append(fields, f), append(names, name)
		}
	}
	if err := o.only(names...); err != nil {
		return err
	}
	var faults anteroom.Faults
	for i, f := range fields {
		v, at := o.Get(names[i]), to.FieldByIndex(f.Index)
		var err error
		switch optional := f.Tag.Get("optional") != ""; {
		case v.Null() && !optional:
			err = v.Fault("is missing", f.Tag.Get("doc"))
		case !v.Sent():
		case v.Null():
			at.Set(null.FieldByIndex(f.Index))
		default:
			err = v.read(at, f.Tag)
		}
		if faults = add(faults, err); len(faults) >= maxFaults {
			break
		}
	}
	return faults.Err()
}

// read puts a value that was sent into a field, or into a value of a list or object.
func (v Value) read(to reflect.Value, tag reflect.StructTag) error {
	switch to.Interface().(type) {
	case time.Time:
		text, err := v.Text()
		if err != nil {
			return err
		}
		t, err := anteroom.Stamp(text).Time()
		if err != nil {
			return v.Fault(err.Error(), "")
		}
		to.Set(reflect.ValueOf(t))
		return nil
	case netip.Prefix:
		return v.readNetwork(to)
	}
	switch to.Kind() {
	case reflect.Pointer:
		to.Set(reflect.New(to.Type().Elem()))
		return v.read(to.Elem(), tag)
	case reflect.Struct:
		o, err := v.Object()
		if err != nil {
			return err
		}
		return o.read(to, reflect.Zero(to.Type()))
	case reflect.Map:
		return v.readMap(to, tag)
	case reflect.Slice:
		return v.readList(to, tag)
	case reflect.Bool:
		on, err := v.Bool()
		to.SetBool(on)
		return err
	case reflect.Int:
		return v.readInt(to, tag)
	default:
		return v.readText(to, tag)
	}
}

func (v Value) readText(to reflect.Value, tag reflect.StructTag) error {
	text, err := v.Text()
	if err != nil {
		return err
	}
	if enum := tag.Get("enum"); enum != "" && (text != "" || tag.Get("optional") == "") && !slices.Contains(strings.Split(enum, ","), text) {
		return v.Fault(fmt.Sprintf("%.40q is not known", text), "one of "+strings.ReplaceAll(enum, ",", ", "))
	}
	to.SetString(text)
	return nil
}

// readInt reads a whole number and checks its bounds. Without a min tag the lower bound is 0.
func (v Value) readInt(to reflect.Value, tag reflect.StructTag) error {
	n, err := v.Int()
	if err != nil {
		return err
	}
	least, _ := strconv.Atoi(tag.Get("min"))
	if most, err := strconv.Atoi(tag.Get("max")); n < least || err == nil && n > most {
		return v.Fault(fmt.Sprintf("%d is out of range", n), strings.TrimSuffix(fmt.Sprintf("%d to %s", least, tag.Get("max")), " to "))
	}
	to.SetInt(int64(n))
	return nil
}

func (v Value) readList(to reflect.Value, tag reflect.StructTag) error {
	most, err := strconv.Atoi(tag.Get("max"))
	if err != nil {
		most = maxBodyMembers
	}
	values, err := v.Array(most)
	if err != nil && tag.Get("single") != "" {
		values, err = []Value{v}, nil
	}
	if err != nil {
		return err
	}
	list := reflect.MakeSlice(to.Type(), len(values), len(values))
	var faults anteroom.Faults
	for i, one := range values {
		faults = add(faults, one.read(list.Index(i), tag))
	}
	to.Set(list)
	return faults[:min(len(faults), maxFaults)].Err()
}

func (v Value) readMap(to reflect.Value, tag reflect.StructTag) error {
	o, err := v.Object()
	if err != nil {
		return err
	}
	to.Set(reflect.MakeMap(to.Type()))
	for _, name := range o.names() {
		one := reflect.New(to.Type().Elem()).Elem()
		if err := o.Get(name).read(one, tag); err != nil {
			return err
		}
		to.SetMapIndex(reflect.ValueOf(name), one)
	}
	return nil
}

// readNetwork reads a network. An address becomes a network of one address.
func (v Value) readNetwork(to reflect.Value) error {
	text, err := v.Text()
	if err != nil {
		return err
	}
	n, err := netip.ParsePrefix(text)
	if a, isAddress := netip.ParseAddr(text); isAddress == nil && a.Zone() == "" {
		n, err = a.Prefix(a.BitLen())
	}
	if err != nil {
		return v.Fault("is not a network", "an address or CIDR, like 192.0.2.0/24")
	}
	to.Set(reflect.ValueOf(n.Masked()))
	return nil
}
