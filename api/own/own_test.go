package own

import (
	"encoding/hex"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/anteroom/anteroom"
	"github.com/anteroom/anteroom/api/own/schema"
	"github.com/anteroom/anteroom/manage"
)

// The life of everything, in which every operation is seen to answer as the document says.
func TestEveryOperation(t *testing.T) {
	w := newWorld(t)
	room, event := w.shop()
	zone, _, _ := strings.Cut(room, "/rooms/")

	w.ok("GET", "/zones", "", nil)
	w.ok("GET", zone, "", nil)
	w.ok("PATCH", zone, `{"search_engine_crawler_bypass":true}`, nil)

	w.ok("GET", "/rooms", "", nil)
	w.ok("GET", room, "", nil)
	w.ok("GET", room+"/status", "", nil)
	w.ok("GET", room+"/analytics", "", nil)
	w.ok("GET", "/analytics", "", nil)
	w.ok("GET", room+"/report", "", nil)
	w.now = w.now.Add(4 * time.Hour)
	w.ok("GET", event+"/report", "", nil)
	w.now = w.now.Add(-4 * time.Hour)
	w.ok("GET", room+"/visitors/"+inside.Reference(), "", nil)
	w.ok("DELETE", room+"/sessions/"+hex.EncodeToString(inside[:]), "", nil)
	var batch struct {
		ID    string
		Codes []string
		Uses  int
	}
	w.ok("POST", room+"/invites", `{"count":2,"name":"members","uses":3}`, &batch)
	if len(batch.Codes) != 2 || batch.Uses != 3 {
		t.Errorf("%+v", batch)
	}
	var batches []map[string]any
	w.ok("GET", room+"/invites", "", &batches)
	if len(batches) != 1 || batches[0]["codes"] != nil || batches[0]["used"] != 0. {
		t.Errorf("%+v", batches)
	}
	w.refused(adminToken, "POST", room+"/invites", `{"count":0}`, 400, "1 to 10000")
	w.refused(adminToken, "POST", room+"/invites", `{"count":1,"event":"00000000000000000000000000000001"}`, 400, "there is no event")
	var revoked struct{ Used int }
	if w.ok("POST", room+"/invites/revoke", `{"code":"`+strings.ToLower(batch.Codes[0])+`"}`, &revoked); revoked.Used != 3 {
		t.Errorf("revoked: %+v", revoked)
	}
	w.refused(adminToken, "POST", room+"/invites/revoke", `{"code":"K7QM-2XHP-9D4T-W3FN"}`, 404, "no such invite code")
	w.refused(adminToken, "POST", room+"/invites/revoke", `{"code":"K7QM"}`, 400, "16 letters and digits")
	w.ok("DELETE", room+"/invites/"+batch.ID, "", nil)
	var touched schema.Touched
	id := room[strings.LastIndex(room, "/")+1:]
	touches := func(list string) string { return `{"room":"` + id + `","touches":[` + list + `]}` }
	w.ok("POST", "/touch", touches(`{"ticket":"good"},{"ticket":"bad","seconds_ago":1},{"ticket":"good","seconds_ago":11},{"ticket":"good","seconds_ago":10}`), &touched)
	if want := (schema.Touched{Taken: 2, Refused: []schema.RefusedTouch{{Index: 1, Reason: "ticket"}, {Index: 2, Reason: "age"}}}); !reflect.DeepEqual(touched, want) {
		t.Errorf("%+v, want %+v", touched, want)
	}
	if w.ok("POST", "/touch", touches(""), &touched); touched.Taken != 0 || touched.Refused == nil {
		t.Errorf("of none: %+v", touched)
	}
	w.refused(adminToken, "POST", "/touch", touches(strings.Repeat(`{"ticket":"good"},`, anteroom.MaxTouches)+`{"ticket":"good"}`), 400, "at most 1000")
	w.refused(adminToken, "POST", "/touch", touches(`{"ticket":"good","seconds_ago":-1}`), 400, "out of range")
	w.refused(adminToken, "POST", "/touch", touches(`{"tickets":"good"}`), 400, "is not known here")
	w.ok("POST", "/touch", touches(`{"ticket":"good","seconds_ago":9223372036854775807}`), &touched)
	w.refused(adminToken, "POST", "/touch", `{"room":"00000000000000000000000000000001","touches":[]}`, 404, "Object not found")
	w.ok("POST", room+"/admit", `{"count":20}`, nil)
	for _, o := range []string{"pause", "drain", "resume"} {
		w.ok("POST", room+"/"+o, "", nil)
	}
	w.ok("POST", room+"/reset", `{"confirm":"checkout"}`, nil)
	w.ok("PUT", room+"/message", `{"text":"Doors open at 10."}`, nil)
	w.ok("DELETE", room+"/message", "", nil)

	var held struct{ Remaining *int }
	w.refused(adminToken, "POST", room+"/remaining", `{"sold":1}`, 400, "the number of items left is not set")
	for _, step := range []struct {
		method, body string
		left         int
	}{{"PUT", `{"remaining":50}`, 50}, {"POST", `{"sold":3}`, 47}, {"POST", `{"sold":1000}`, 0}, {"PUT", `{"remaining":1000000000}`, 1_000_000_000}} {
		if w.ok(step.method, room+"/remaining", step.body, &held); held.Remaining == nil || *held.Remaining != step.left {
			t.Errorf("%s %s: %v, want %d", step.method, step.body, held.Remaining, step.left)
		}
	}
	for _, bad := range []struct{ method, body, problem string }{
		{"PUT", `{"remaining":-1}`, "0 to 1000000000"}, {"PUT", `{"remaining":1000000001}`, "0 to 1000000000"}, {"PUT", `{"remaining":1.5}`, "remaining"},
		{"POST", `{"sold":0}`, "1 to 1000000000"}, {"POST", `{"sold":-5}`, "1 to 1000000000"}, {"POST", `{}`, "is missing"},
	} {
		w.refused(adminToken, bad.method, room+"/remaining", bad.body, 400, bad.problem)
	}
	if w.ok("DELETE", room+"/remaining", "", &held); held.Remaining != nil {
		t.Errorf("removed: %d", *held.Remaining)
	}

	var crowd struct {
		Visitors int
		Began    *time.Time `json:"began_at"`
		Ended    *time.Time `json:"ended_at"`
	}
	if w.ok("GET", room+"/crowd", "", &crowd); crowd.Began != nil {
		t.Errorf("a crowd that nobody has sent: %+v", crowd)
	}
	w.refused(adminToken, "POST", room+"/crowd", `{"visitors":2001}`, 400, "1 to 2000")
	w.refused(adminToken, "POST", room+"/crowd", `{"visitors":1,"over_seconds":601}`, 400, "0 to 600")
	w.refused(adminToken, "POST", room+"/crowd", `{"visitors":1}`, 400, "visitors are waiting in room")
	w.doors.quiet = true
	if w.ok("POST", room+"/crowd", `{"visitors":3,"over_seconds":2}`, &crowd); crowd.Visitors != 3 || crowd.Began == nil || crowd.Ended != nil {
		t.Errorf("the crowd: %+v", crowd)
	}
	w.refused(adminToken, "POST", room+"/crowd", `{"visitors":1}`, 400, "already sending simulated visitors")
	w.ok("GET", room+"/crowd", "", &crowd)
	if w.ok("DELETE", room+"/crowd", "", &crowd); crowd.Ended == nil {
		t.Error("the crowd goes on")
	}

	var list manage.Checklist
	if w.ok("GET", event+"/checklist", "", &list); list.Result != manage.CheckWarning || len(list.Checks) != 9 {
		t.Errorf("the checklist: %+v", list)
	}
	w.refused(adminToken, "GET", room+"/events/00000000000000000000000000000000/checklist", "", 404, "not found")
	w.ok("GET", event+"/repeat", "", nil)
	w.ok("PUT", event+"/repeat", `{"every":"week","times":10,"time_zone":"Europe/Berlin"}`, nil)
	w.ok("GET", event+"/repeat", "", nil)
	w.ok("DELETE", event+"/repeat", "", nil)
	w.doors.shuffle = &anteroom.Shuffle{Commitment: [32]byte{1}}
	w.ok("GET", event+"/shuffles/0", "", nil)

	var token struct{ ID string }
	w.ok("POST", "/tokens", `{"name":"terraform","grants":[{"permission":"edit"}]}`, &token)
	w.ok("GET", "/tokens", "", nil)
	w.ok("GET", "/tokens/"+token.ID, "", nil)
	w.ok("POST", "/tokens/"+token.ID+"/rotate", `{"overlap_seconds":3600}`, nil)
	w.ok("DELETE", "/tokens/"+token.ID, "", nil)

	var hook struct{ ID string }
	w.ok("POST", "/webhooks", `{"name":"on call","url":"https://hooks.example.com/x"}`, &hook)
	w.ok("GET", "/webhooks", "", nil)
	w.ok("GET", "/webhooks/"+hook.ID, "", nil)
	w.ok("PATCH", "/webhooks/"+hook.ID, `{"enabled":false,"longer_than":null}`, nil)
	w.ok("POST", "/webhooks/"+hook.ID+"/rotate", `{"overlap_seconds":3600}`, nil)
	w.ok("POST", "/webhooks/"+hook.ID+"/test", "", nil)
	w.ok("GET", "/webhooks/"+hook.ID+"/deliveries", "", nil)
	w.ok("DELETE", "/webhooks/"+hook.ID, "", nil)

	w.ok("POST", "/rules/test", `{"expression":"ssl"}`, nil)
	w.ok("POST", "/templates/check", `{"html":""}`, nil)

	w.ok("GET", "/audit", "", nil)
	w.ok("GET", "/audit/verify", "", nil)
	w.ok("GET", "/origins", "", nil)
	w.ok("GET", "/cluster", "", nil)
	w.ok("GET", "/configuration", "", nil)
	w.ok("DELETE", "/cluster/nodes/node-3", "", nil)
	w.refused(adminToken, "DELETE", "/cluster/nodes/node-1", "", 400, "node-1 runs")
	w.ok("DELETE", "/cluster/nodes/node-1?force=true", "", nil)
	var replaced struct{ ID, By string }
	w.ok("POST", "/cluster/nodes/node-3/replace", `{"by":"node-4"}`, &replaced)
	if replaced.ID != "node-3" || replaced.By != "node-4" {
		t.Errorf("replaced: %+v", replaced)
	}
	w.refused(adminToken, "POST", "/cluster/nodes/node-1/replace", `{"by":"node-4"}`, 400, "node-1 runs")
	w.ok("POST", "/cluster/nodes/node-1/replace", `{"by":"node-4","force":true}`, nil)
	var added manage.AddedCores
	w.ok("POST", "/cluster/add", "", &added)
	if added != (manage.AddedCores{Cores: 3, Complete: true}) {
		t.Errorf("added: %+v", added)
	}
	w.ok("POST", "/cluster/shrink", "", nil)
	w.refused(adminToken, "DELETE", "/cluster/sites/paris", "", 400, "no site paris")
	w.ok("DELETE", "/cluster/sites/tokyo", "", nil)
	var audit []struct{ Operation, Object string }
	w.ok("GET", "/audit?last=7", "", &audit)
	if got := fmt.Sprint(audit); got != "[{cluster.remove_node node-3} {cluster.remove_node node-1} {cluster.replace_node node-3} {cluster.replace_node node-1} {cluster.add_cores } {cluster.shrink_cores } {cluster.forget_site tokyo}]" {
		t.Errorf("audit: %s", got)
	}

	by := manage.Caller{Name: "test", Grants: []manage.Grant{{Permission: manage.Admin}}}
	if err := w.manage.DeleteRoom(t.Context(), by, anteroom.ZoneID(strings.TrimPrefix(zone, "/zones/")), anteroom.RoomID(room[len(room)-32:])); err != nil {
		t.Fatal(err)
	}
	w.ok("DELETE", zone, "", nil)

	for _, o := range w.schemas.all {
		switch o.ID {
		case "describe", "rotateKeys", "getShuffleIDs", "backup", "restore": // in tests of their own
		default:
			if !w.seen[o.ID] {
				t.Errorf("%s %s was not asked for", o.Method, o.Path)
			}
		}
	}
}

func TestTokens(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	zone := strings.TrimPrefix(strings.Split(room, "/rooms/")[0], "/zones/")
	type token struct {
		ID        string
		Name      string
		Secret    string
		AuthKey   string     `json:"auth_key"`
		ExpiresOn *time.Time `json:"expires_on"`
		Networks  []string
		Grants    []struct{ Permission, Zone, Room *string }
		Secrets   []struct {
			ExpiresOn *time.Time `json:"expires_on"`
		}
	}
	var first token
	w.ok("POST", "/tokens", `{"name":"reader","grants":[{"permission":"read","zone":"`+zone+`"}],"networks":["192.0.2.1","10.1.2.3/8"],"expires_on":null}`, &first)
	if first.ExpiresOn != nil || strings.Join(first.Networks, " ") != "192.0.2.1/32 10.0.0.0/8" || *first.Grants[0].Zone != zone || first.Grants[0].Room != nil {
		t.Errorf("%+v", first)
	}
	if key := manage.AuthKey(first.Secret); first.AuthKey != key {
		t.Errorf("the global key %q, want %q", first.AuthKey, key)
	}
	// httptest's requests come from 192.0.2.1.
	if a := w.do(first.Secret, "GET", room, ""); a.Status != 200 {
		t.Errorf("a reader cannot read: %s", a.Text)
	}
	w.refused(first.Secret, "POST", room+"/pause", "", 403, "Authentication error")
	w.refused(first.Secret, "GET", "/tokens", "", 403, "Authentication error")
	w.refused(first.Secret, "GET", "/audit", "", 403, "Authentication error")
	w.refused("", "GET", "/rooms", "", 401, "Authentication error")
	w.refused("not-a-token-of-anybody-0123456789-0123456789", "GET", "/rooms", "", 403, "Authentication error")

	var elsewhere, brief, usual token
	w.ok("POST", "/tokens", `{"name":"elsewhere","grants":[{"permission":"read"}],"networks":["198.51.100.0/24"]}`, &elsewhere)
	w.refused(elsewhere.Secret, "GET", "/rooms", "", 403, "Authentication error")
	w.ok("POST", "/tokens", `{"name":"brief","grants":[{"permission":"read"}],"expires_on":"2026-11-27T10:00:00Z"}`, &brief)
	w.ok("POST", "/tokens", `{"name":"usual","grants":[{"permission":"admin"}]}`, &usual)
	if want := w.now.Add(manage.DefaultTokenLife); usual.ExpiresOn == nil || !usual.ExpiresOn.Equal(want) {
		t.Errorf("it expires %v, want %v", usual.ExpiresOn, want)
	}

	var second token
	w.ok("POST", "/tokens/"+first.ID+"/rotate", `{"overlap_seconds":60}`, &second)
	if second.Secret == first.Secret || len(second.Secrets) != 2 {
		t.Errorf("%+v", second)
	}
	for _, secret := range []string{first.Secret, second.Secret} {
		if a := w.do(secret, "GET", "/rooms", ""); a.Status != 200 {
			t.Errorf("during the overlap: %s", a.Text)
		}
	}
	w.now = w.now.Add(61 * time.Minute)
	w.refused(first.Secret, "GET", "/rooms", "", 403, "Authentication error")
	w.refused(brief.Secret, "GET", "/rooms", "", 403, "Authentication error")
	if a := w.do(second.Secret, "GET", "/rooms", ""); a.Status != 200 {
		t.Errorf("after the overlap: %s", a.Text)
	}
	if a := w.ok("GET", "/tokens", "", nil); strings.Contains(a.Text, second.Secret) {
		t.Error("the list has a secret")
	}
	w.ok("DELETE", "/tokens/"+first.ID, "", nil)
	w.refused(second.Secret, "GET", "/rooms", "", 403, "Authentication error")
	w.refused(adminToken, "GET", "/tokens/"+first.ID, "", 404, "Object not found")
	w.refused(adminToken, "DELETE", "/tokens/"+first.ID, "", 404, "Object not found")

	for body, text := range map[string]string{
		`{"name":"x"}`: "/grants",
		`{"name":"","grants":[{"permission":"read"}]}`:                                      "/name",
		`{"name":"x","grants":[{"permission":"write"}]}`:                                    "/grants/0/permission",
		`{"name":"x","grants":[{"permision":"read"}]}`:                                      "permision: is not known here",
		`{"name":"x","grants":[{"permission":"read","zone":"1"}]}`:                          "/grants/0/zone",
		`{"name":"x","grants":[{"permission":"read"}],"networks":["10.0.0.0/99"]}`:          "/networks/0",
		`{"name":"x","grants":[{"permission":"read"}],"networks":"10.0.0.0/8"}`:             "/networks",
		`{"name":"x","grants":[{"permission":"read"}],"expires_on":"soon"}`:                 "/expires_on",
		`{"name":"x","grants":[{"permission":"read"}],"expires_on":"2020-01-01T00:00:00Z"}`: "has passed",
		`{"name":"x","grants":{}}`:                                                          "/grants",
		`[]`:                                                                                "body is a list",
		`{"name":"x"`:                                                                       "not JSON",
		``:                                                                                  "body is empty",
	} {
		w.refused(adminToken, "POST", "/tokens", body, 400, text)
	}
	for _, body := range []string{`{}`, `{"overlap_seconds":-1}`, `{"overlap_seconds":2592001}`, `{"overlap_seconds":1.5}`, `{"overlap_seconds":"1"}`, `{"overlap_seconds":99999999999999999999}`} {
		w.refused(adminToken, "POST", "/tokens/"+usual.ID+"/rotate", body, 400, "overlap_seconds")
	}
}

func TestRoomsAreFoundByName(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	var rooms []struct {
		ID, Name string
		Zone     struct{ Name string }
		File     bool
	}
	for query, want := range map[string]int{"": 2, "?zone=example.com&name=checkout": 1, "?name=checkout": 1, "?zone=example.org": 0, "?name=": 0,
		"?id=" + room[len(room)-32:]: 1, "?zone=fixed.example.org": 1, "?page=2": 0, "?per_page=5&page=1": 2} {
		if w.ok("GET", "/rooms"+query, "", &rooms); len(rooms) != want {
			t.Errorf("%s: %d rooms, want %d", query, len(rooms), want)
		}
	}
	w.ok("GET", "/rooms", "", &rooms)
	if !rooms[0].File || rooms[0].Zone.Name != "fixed.example.org" || rooms[1].File {
		t.Errorf("%+v", rooms)
	}
	w.refused(adminToken, "GET", "/rooms?page=0", "", 400, "page")
	w.refused(adminToken, "GET", "/rooms?per_page=7", "", 400, "multiple of 5")

	var mine struct{ Secret string }
	w.ok("POST", "/tokens", `{"name":"x","grants":[{"permission":"read","zone":"`+string(anteroom.ZoneIDOf("fixed.example.org"))+`"}]}`, &mine)
	a := w.do(mine.Secret, "GET", "/rooms", "")
	if strings.Contains(a.Text, "checkout") || !strings.Contains(a.Text, "fixed") {
		t.Errorf("what one token may see: %s", a.Text)
	}
	w.refused(mine.Secret, "GET", room, "", 403, "Authentication error")
}

func TestZones(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	zone := strings.Split(room, "/rooms/")[0]
	w.refused(adminToken, "POST", "/zones", `{"name":"example.com"}`, 400, "exists already")
	w.refused(adminToken, "POST", "/zones", `{"name":"https://example.com"}`, 400, "not a host name")
	w.refused(adminToken, "DELETE", zone, "", 400, "delete them first")
	w.refused(adminToken, "GET", "/zones/"+strings.Repeat("0", 32), "", 404, "Object not found")
	w.refused(adminToken, "PATCH", zone, `{"search_engine_crawler_bypas":true}`, 400, "is not known here (one of search_engine_crawler_bypass)")
	var z struct {
		Bypass bool `json:"search_engine_crawler_bypass"`
		Rooms  int
	}
	w.ok("PATCH", zone, `{"search_engine_crawler_bypass":true}`, nil)
	if w.ok("PATCH", zone, `{}`, &z); !z.Bypass || z.Rooms != 1 {
		t.Errorf("%+v", z)
	}
}

func TestTheHandOnARoom(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	type controls struct {
		Paused, Draining bool
		ResetAt          *time.Time `json:"reset_at"`
	}
	var c controls
	if w.ok("POST", room+"/pause", "", &c); !c.Paused || c.Draining {
		t.Errorf("paused: %+v", c)
	}
	if w.ok("POST", room+"/drain", "", &c); !c.Paused || !c.Draining {
		t.Errorf("and draining: %+v", c)
	}
	if w.ok("POST", room+"/resume", "", &c); c != (controls{}) {
		t.Errorf("resumed: %+v", c)
	}
	for _, body := range []string{`{}`, `{"confirm":""}`, `{"confirm":"chekout"}`, `{"confirm":true}`, ``} {
		w.refused(adminToken, "POST", room+"/reset", body, 400, "")
	}
	var shown struct{ Controls controls }
	if w.ok("GET", room, "", &shown); shown.Controls != (controls{}) {
		t.Errorf("a reset that was refused: %+v", shown.Controls)
	}
	// The clock of the places is the door's.
	if w.ok("POST", room+"/reset", `{"confirm":"checkout"}`, &c); c.ResetAt == nil || !c.ResetAt.After(doorTime.Std()) || c.ResetAt.Sub(doorTime.Std()) > time.Millisecond {
		t.Errorf("reset at %v, the door's time is %v", c.ResetAt, doorTime.Std())
	}

	var admitted struct{ Admitted int }
	if w.ok("POST", room+"/admit", `{"count":20}`, &admitted); admitted.Admitted != 1 {
		t.Errorf("%+v", admitted)
	}
	for _, body := range []string{`{}`, `{"count":0}`, `{"count":1000001}`, `{"count":-1}`, `{"count":"5"}`, `{"count":1e400}`} {
		w.refused(adminToken, "POST", room+"/admit", body, 400, "/count")
	}

	file := "/zones/" + string(anteroom.ZoneIDOf("fixed.example.org")) + "/rooms/" + string(anteroom.RoomIDOf("fixed.example.org", "fixed"))
	if w.ok("POST", file+"/pause", "", &c); !c.Paused {
		t.Errorf("a pause of a room of the file: %+v", c)
	}
	w.refused(adminToken, "POST", room[:len(room)-1]+"x/pause", "", 404, "Object not found")
}

func TestVisitorsAreFoundByTheirCode(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	var found []struct {
		ID, Reference, Standing string
		AcceptedAt              *time.Time `json:"accepted_at"`
		Ahead                   *int
	}
	w.ok("GET", room+"/visitors/3F9A1-C07BE", "", &found)
	if len(found) != 2 || found[0].Standing != "active" || found[0].Ahead != nil || found[0].AcceptedAt == nil || found[1].Standing != "waiting" || *found[1].Ahead != 0 || found[1].AcceptedAt != nil {
		t.Errorf("%+v", found)
	}
	w.refused(adminToken, "GET", room+"/visitors/00000-00000", "", 404, "No visitor with the code 00000-00000")
	for _, bad := range []string{"3f9a1c07be", "3f9a1-c07b", "zzzzz-zzzzz", "3f9a1-c07be-00000", "%00", strings.Repeat("a", 5000)} {
		w.refused(adminToken, "GET", room+"/visitors/"+bad, "", 400, "not the code of a visitor")
	}
	if n := len(w.doors.asked); n != 2 {
		t.Errorf("the door was asked %d times: %q", n, w.doors.asked)
	}
	w.refused(adminToken, "DELETE", room+"/sessions/"+hex.EncodeToString(inLine[:]), "", 404, "No visitor with this id has a session")
	w.refused(adminToken, "DELETE", room+"/sessions/3f9a1-c07be", "", 400, "32 hexadecimal digits")
}

func TestStatusInFull(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	var st struct {
		Mode string
		Wait float64 `json:"wait_of_newcomer_seconds"`
		In   *struct {
			Phase   string
			Event   *struct{ Name string }
			Until   *time.Time
			Seconds float64 `json:"session_duration_seconds"`
		} `json:"in_force"`
	}
	if w.ok("GET", room+"/status", "", &st); st.Mode != "queue" || st.Wait != 90 || st.In != nil {
		t.Errorf("%+v", st)
	}
	w.doors.event = &anteroom.Event{ID: "25756b2dfe6e378a06b033b670413757", Name: "drop", Start: "2026-11-27T10:00:00Z", End: "2026-11-27T12:00:00Z"}
	if w.ok("GET", room+"/status", "", &st); st.In == nil || st.In.Phase != "started" || st.In.Event.Name != "drop" || st.In.Seconds != 300 || st.In.Until == nil {
		t.Errorf("%+v", st)
	}
	if a := w.ok("GET", room+"/status", "", nil); !strings.Contains(string(a.Result), `"lanes":[{"name":"gold","priority":80,"share":5,"reserved":7,"waiting":0,"active_users":0,"wait_of_newcomer_seconds":90},{"name":"everyone","priority":0,`) {
		t.Errorf("nobody has counted: %s", a.Result)
	}
	w.doors.lanes = []anteroom.LaneStatus{{Name: "gold", Priority: 80, Waiting: 3, ActiveUsers: 2, WaitKnown: true, WaitOfNewcomer: 1500 * time.Millisecond}, {Waiting: 1}}
	if a := w.ok("GET", room+"/status", "", nil); !strings.Contains(string(a.Result), `"lanes":[{"name":"gold","priority":80,"share":5,"reserved":7,"waiting":3,"active_users":2,"wait_of_newcomer_seconds":1.5},`+
		`{"name":null,"priority":0,"share":0,"reserved":0,"waiting":1,"active_users":0,"wait_of_newcomer_seconds":null}]`) {
		t.Errorf("%s", a.Result)
	}
}

func TestRepeat(t *testing.T) {
	w := newWorld(t)
	_, event := w.shop()
	if a := w.ok("GET", event+"/repeat", "", nil); string(a.Result) != "null" {
		t.Errorf("an event that happens once: %s", a.Result)
	}
	a := w.ok("PUT", event+"/repeat", `{"every":"day"}`, nil)
	if want := `{"every":"day","interval":1,"times":null,"until":null,"time_zone":"UTC"}`; string(a.Result) != want {
		t.Errorf("%s, want %s", a.Result, want)
	}
	a = w.ok("PUT", event+"/repeat", `{"every":"week","interval":2,"times":3,"until":"2027-06-01T00:00:00+02:00","time_zone":"Europe/Berlin"}`, nil)
	if want := `{"every":"week","interval":2,"times":3,"until":"2027-06-01T00:00:00+02:00","time_zone":"Europe/Berlin"}`; string(a.Result) != want {
		t.Errorf("%s, want %s", a.Result, want)
	}
	for body, text := range map[string]string{
		`{}`:                                    "every: is missing",
		`{"every":"month"}`:                     "repeat.every",
		`{"every":"day","interval":367}`:        "repeat.interval",
		`{"every":"day","times":1001}`:          "repeat.times",
		`{"every":"day","until":"later"}`:       "repeat.until",
		`{"every":"day","time_zone":"Nowhere"}`: "repeat.time_zone",
		`{"every":"day","evry":1}`:              "evry: is not known here",
	} {
		w.refused(adminToken, "PUT", event+"/repeat", body, 400, text)
	}
	if a := w.ok("GET", event+"/repeat", "", nil); !strings.Contains(string(a.Result), "week") {
		t.Errorf("what was refused has changed something: %s", a.Result)
	}
	if a := w.ok("DELETE", event+"/repeat", "", nil); string(a.Result) != "null" {
		t.Errorf("after the end: %s", a.Result)
	}
	w.refused(adminToken, "GET", event[:len(event)-1]+"x/repeat", "", 404, "Object not found")
}

// Before the shuffle its seed is nobody's, afterwards everybody's.
func TestShuffleRecord(t *testing.T) {
	w := newWorld(t)
	_, event := w.shop()
	w.refused(adminToken, "GET", event+"/shuffles/0", "", 404, "Object not found")
	seed := [32]byte{7}
	w.doors.shuffle = &anteroom.Shuffle{Commitment: [32]byte{1}, Seed: seed}
	a := w.ok("GET", event+"/shuffles/0", "", nil)
	if strings.Contains(a.Text, hex.EncodeToString(seed[:])) || !strings.Contains(a.Text, `"seed":null`) || !strings.Contains(a.Text, `"done":false`) {
		t.Errorf("before: %s", a.Text)
	}
	w.refused(adminToken, "GET", event+"/shuffles/0/ids", "", 404, "has not happened yet")
	w.doors.shuffle.Done, w.doors.shuffle.At, w.doors.shuffle.IDs = true, doorTime, []anteroom.ID{inside, inLine}
	a = w.ok("GET", event+"/shuffles/0", "", nil)
	if !strings.Contains(a.Text, hex.EncodeToString(seed[:])) || !strings.Contains(a.Text, `"count":2`) {
		t.Errorf("after: %s", a.Text)
	}
	if got := w.raw("GET", event+"/shuffles/0/ids", nil); got.Code != 200 || got.Body.String() != string(inside[:])+string(inLine[:]) || got.Header().Get("Content-Length") != "32" {
		t.Errorf("the ids: %d %v %q", got.Code, got.Header(), got.Body)
	}
	w.refused(adminToken, "GET", event+"/shuffles/1", "", 404, "Object not found")
	for _, bad := range []string{"x", "-1", "99999999999"} {
		w.refused(adminToken, "GET", event+"/shuffles/"+bad, "", 400, "number of an occurrence")
	}
}

func TestAudit(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	w.ok("POST", room+"/pause", "", nil)
	type record struct {
		Seq       uint64
		Operation string
		Actor     string
		Address   string
	}
	var all, some []record
	w.ok("GET", "/audit", "", &all)
	last := all[len(all)-1]
	if last.Operation != "room.controls" || last.Address != "192.0.2.1" || last.Actor == "" {
		t.Errorf("%+v", last)
	}
	if w.ok("GET", "/audit?after=1&limit=2", "", &some); len(some) != 2 || some[0].Seq != 2 {
		t.Errorf("%+v", some)
	}
	if w.ok("GET", "/audit?last=2", "", &some); len(some) != 2 || some[1] != last {
		t.Errorf("%+v", some)
	}
	if w.ok("GET", "/audit?last=1000", "", &some); len(some) != len(all) {
		t.Errorf("%d of %d", len(some), len(all))
	}
	if w.ok("GET", "/audit?after=1000000", "", &some); len(some) != 0 {
		t.Errorf("after the end: %+v", some)
	}
	for _, q := range []string{"limit=0", "limit=1001", "limit=x", "after=-1", "after=x", "last=0", "after=1&last=1"} {
		w.refused(adminToken, "GET", "/audit?"+q, "", 400, "1002")
	}
	var verified struct {
		Records int
		Head    string
	}
	if w.ok("GET", "/audit/verify", "", &verified); verified.Records != len(all) || len(verified.Head) != 64 {
		t.Errorf("%+v", verified)
	}
}

// A backup brings back what was there, and nothing that is not one changes anything.
func TestBackupAndRestore(t *testing.T) {
	w := newWorld(t)
	room, _ := w.shop()
	backup := w.raw("GET", "/backup", nil)
	if backup.Code != 200 || backup.Header().Get("Content-Type") != "application/gzip" || !strings.Contains(backup.Header().Get("Content-Disposition"), "anteroom-20261127T090000Z.backup") {
		t.Fatalf("%d %v", backup.Code, backup.Header())
	}
	whole := backup.Body.String()
	w.refused(adminToken, "GET", "/backup?keys=yes", "", 400, "keys: is neither")
	w.refused(adminToken, "GET", "/backup?keys=true", "", 503, "no ticket keys")
	w.ok("POST", room+"/pause", "", nil)
	w.ok("POST", "/zones", `{"name":"example.org"}`, nil)
	for body, text := range map[string]string{"": "not a gzip", "nonsense": "not a gzip", whole[:len(whole)/2]: "line"} {
		w.refused(adminToken, "POST", "/restore?confirm=replace", body, 400, text)
	}
	w.refused(adminToken, "POST", "/restore", whole, 400, "confirm: is not")
	var shown struct{ Controls struct{ Paused bool } }
	if w.ok("GET", room, "", &shown); !shown.Controls.Paused {
		t.Error("what was refused has changed something")
	}
	var got struct{ Zones, Rooms int }
	if w.ok("POST", "/restore?confirm=replace", whole, &got); got.Zones != 1 || got.Rooms != 1 {
		t.Errorf("%+v", got)
	}
	if w.ok("GET", room, "", &shown); shown.Controls.Paused {
		t.Error("the room is not as the backup has it")
	}
	var reader struct{ Secret string }
	w.ok("POST", "/tokens", `{"name":"reader","grants":[{"permission":"edit"}]}`, &reader)
	w.refused(reader.Secret, "GET", "/backup", "", 403, "Authentication error")
	w.refused(reader.Secret, "POST", "/restore?confirm=replace", whole, 403, "Authentication error")
}

func TestKeysThatAreNotOurs(t *testing.T) {
	w := newWorld(t)
	for _, body := range []string{"", `{}`, `{"forget":true}`} {
		w.refused(adminToken, "POST", "/keys/rotate", body, 503, "no ticket keys")
	}
	for _, body := range []string{`{"forgot":true}`, `{"forget":1}`, `[]`} {
		w.refused(adminToken, "POST", "/keys/rotate", body, 400, "")
	}
}

func TestMethodsAndPathsThatAreNone(t *testing.T) {
	w := newWorld(t)
	w.refused(adminToken, "PUT", "/rooms", "", 405, "this path has GET")
	w.refused(adminToken, "GET", "/nothing", "", 404, "No route")
	w.refused(adminToken, "GET", "/rooms/", "", 404, "No route")
}
