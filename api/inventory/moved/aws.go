package moved

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/internal/field"
)

// awsItem is what "aws cloudformation describe-stacks" prints, one of its stacks, or a member of a file of parameters.
type awsItem struct {
	Stacks []awsStack
	awsStack
	awsValue
}

type awsStack struct {
	StackName           string
	Parameters, Outputs []awsValue
}

type awsValue struct{ ParameterKey, ParameterValue, OutputKey, OutputValue string }

// awsEvent is what stacks say about an event id. Names of parameters are in lower case: the stacks do not agree about it.
type awsEvent struct {
	id     string
	values map[string]awsValue
	names  []string // in their order
}

func (e *awsEvent) add(values []awsValue) {
	for _, v := range values {
		name := strings.ToLower(v.ParameterKey + v.OutputKey)
		if _, twice := e.values[name]; !twice {
			e.names = append(e.names, name)
			e.values[name] = v
		}
	}
}

// take returns a value, which the report names from now on.
func (e *awsEvent) take(name string) string {
	v := e.values[name]
	e.names = slices.DeleteFunc(e.names, func(s string) bool { return s == name })
	return v.ParameterValue + v.OutputValue
}

// number takes a whole number from least to most.
func (e *awsEvent) number(name string, least, most int) (int, bool) {
	n, err := strconv.Atoi(e.take(name))
	return n, err == nil && n >= least && n <= most
}

// AWS reads the stacks of an AWS Virtual Waiting Room: core, inlet, OpenID adapter and authorizer.
func AWS(data []byte) (*Config, error) {
	var items []awsItem
	if strings.HasPrefix(strings.TrimLeft(string(data[:min(len(data), 100)]), "\ufeff \t\r\n"), "[") {
		if err := decode(data, &items); err != nil {
			return nil, err
		}
	} else {
		items = make([]awsItem, 1)
		if err := decode(data, &items[0]); err != nil {
			return nil, err
		}
	}
	var stacks []awsStack
	var loose awsStack
	for _, it := range items {
		stacks = append(append(stacks, it.Stacks...), it.awsStack)
		loose.Parameters = append(loose.Parameters, it.awsValue)
	}
	var c Config
	var events []*awsEvent
	for _, s := range append(stacks, loose) {
		i := slices.IndexFunc(s.Parameters, func(v awsValue) bool { return strings.EqualFold(v.ParameterKey, "EventId") && v.ParameterValue != "" })
		if i < 0 {
			if s.StackName != "" {
				c.note(Left, named("StackName", s.StackName), "", "it has no parameter EventId, so it is not a stack of a waiting room")
			}
			continue
		}
		id := s.Parameters[i].ParameterValue
		at := slices.IndexFunc(events, func(e *awsEvent) bool { return e.id == id })
		if at < 0 {
			if len(events) == anteroom.MaxRoutesPerRoom {
				return nil, anteroom.Errorf(anteroom.Invalid, "more than %d event ids: import them in parts", len(events))
			}
			at = len(events)
			events = append(events, &awsEvent{id: id, values: map[string]awsValue{}})
		}
		events[at].add(s.Parameters)
		events[at].add(s.Outputs)
	}
	if len(events) == 0 {
		return nil, anteroom.Errorf(anteroom.Invalid, `no stack has a parameter EventId; export the stacks of the waiting room with "aws cloudformation describe-stacks"`)
	}
	c.origin()
	for _, e := range events {
		c.event(e)
	}
	return &c, nil
}

// awsReasons say why a value is left out.
var awsReasons = map[string]string{
	"cloudwatchalarmname":          "use protect: true, which follows the health of the origin",
	"starttime":                    "pause the room until then, or use an event (docs/events.md)",
	"endtime":                      "pause the room from then on, or use an event (docs/events.md)",
	"enableeventsgeneration":       "there is no event bus; use webhooks",
	"incrsvconqueuepositionexpiry": "always so: if few of the invited visitors come, more are invited",
	"publicapiinvokeurl":           "clients call the url of the bridge",
	"privateapiinvokeurl":          "the private API is at the admin address, below /aws/ and the event id",
	"privatetokenissuer":           "tokens of both APIs have one issuer",
}

func (c *Config) event(e *awsEvent) {
	name := word(e.id)
	room := "rooms." + name
	e.take("eventid")
	if name != e.id {
		c.note(Choose, named("EventId", e.id), "aws.event_id: "+name, "letters, digits, _ and - only; clients must send the same")
	} else {
		c.note(Mapped, named("EventId", e.id), "aws.event_id: "+name, "")
	}
	pairs := []pair{{"name", name, ""}, {"host", shopHost, "choose"}, {"path", "/checkout", "choose"}}
	c.note(Choose, "", room+".host, "+room+".path", "what your authorizer protects")

	validity := time.Hour
	if s, ok := e.number("validityperiod", 1, int(anteroom.MaxSessionDuration/time.Second)); ok {
		validity = time.Duration(s) * time.Second
		c.note(Mapped, fmt.Sprintf("ValidityPeriod: %d", s), room+".session_duration: "+field.Short(validity), "")
	} else {
		c.note(Choose, "ValidityPeriod", room+".session_duration: "+field.Short(validity), "not in the export, or not 1 s to 24 h")
	}
	pairs = append(append(pairs, c.inlet(e, room, validity)...), pair{"session_duration", field.Short(validity), ""})

	enabled := e.take("enablequeuepositionexpiry")
	switch s, ok := e.number("queuepositionexpiryperiod", 30, int(anteroom.MaxPlaceHold/time.Second)); {
	case enabled == "false":
		pairs = append(pairs, pair{"place_hold", "1h", "choose"})
		c.note(Choose, named("EnableQueuePositionExpiry", enabled), room+".place_hold: 1h", "positions always expire here, after an hour at most")
	case ok:
		hold := field.Short(time.Duration(s) * time.Second)
		pairs = append(pairs, pair{"place_hold", hold, ""})
		c.note(Mapped, fmt.Sprintf("QueuePositionExpiryPeriod: %d", s), room+".place_hold: "+hold, "")
	default:
		pairs = append(pairs, pair{"place_hold", "15m", "choose"})
		c.note(Choose, "QueuePositionExpiryPeriod", room+".place_hold: 15m", "not in the export, or not 30 s to 1 h")
	}
	c.rooms = append(c.rooms, mapping(pairs...))

	bridge := []pair{{"event_id", name, ""}, {"room", name, ""}, {"url", queueURL + "/aws/" + strings.ToLower(name), "choose"}}
	c.note(Choose, "", "aws.url", "where clients reach the public API")
	if issuer := e.take("publictokenissuer"); issuer != "" {
		bridge = append(bridge, pair{"issuer", issuer, ""})
		c.note(Mapped, named("PublicTokenIssuer", issuer), "aws.issuer", "your authorizer compares it; leave it out with the OpenID adapter")
	}
	if e.values["inletstrategy"] == (awsValue{}) {
		bridge = append(bridge, pair{"inlet", "custom", ""})
		c.note(Mapped, "no InletStrategy", "aws.inlet: custom", "increment_serving_counter moves the counter, as before")
	}
	if secret := e.take("clientsecretid"); secret != "" {
		c.note(Left, named("ClientSecretID", secret), "", "set client_secret_file and redirect_uris; they are in the Secrets Manager, not in the export")
	}
	c.aws = append(c.aws, mapping(bridge...))

	for _, n := range e.names {
		v := e.values[n]
		why := awsReasons[n]
		if why == "" || n == "endtime" && v.ParameterValue == "0" {
			why = "nothing here needs it"
		}
		c.note(Left, named(v.ParameterKey+v.OutputKey, v.ParameterValue+v.OutputValue), "", why)
	}
}

// inlet returns the limits that do what the inlet does.
func (c *Config) inlet(e *awsEvent, room string, validity time.Duration) []pair {
	strategy := e.take("inletstrategy")
	size, sized := e.number("maxsize", 1, anteroom.MaxUsers)
	rate, rated := e.number("incrementby", 1, anteroom.MaxUsers)
	switch {
	case strategy == "MaxSize" && sized:
		c.note(Mapped, fmt.Sprintf("MaxSize: %d", size), fmt.Sprintf("%s.total_active_users: %d", room, size), "")
		c.note(Choose, "", fmt.Sprintf("%s.new_users_per_minute: %d", room, size), "the MaxSize inlet has no rate")
		return []pair{{"total_active_users", size, ""}, {"new_users_per_minute", size, "choose"}}
	case strategy == "Periodic" && rated:
		most := int(min(anteroom.MaxUsers, float64(rate)*math.Ceil(max(1, validity.Minutes()))))
		c.note(Mapped, fmt.Sprintf("IncrementBy: %d", rate), fmt.Sprintf("%s.new_users_per_minute: %d", room, rate), "")
		c.note(Choose, "", fmt.Sprintf("%s.total_active_users: %d", room, most), "the most that the Periodic inlet admits within ValidityPeriod; lower it to what your application bears")
		return []pair{{"total_active_users", most, "choose"}, {"new_users_per_minute", rate, ""}}
	case strategy != "":
		c.note(Left, named("InletStrategy", strategy), "", "it is not known, or its MaxSize or IncrementBy is not a number above 0")
	}
	return c.limits(room)
}
