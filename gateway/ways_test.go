package gateway

import (
	"strings"
	"testing"
)

// TestOverNetHTTP repeats the tests of what passes between visitor and origin without the fast path: both ways behave
// the same.
func TestOverNetHTTP(t *testing.T) {
	for name, f := range map[string]func(*testing.T){
		"AdmittedSeesTheOrigin":            TestAdmittedSeesTheOrigin,
		"Bodies":                           TestBodies,
		"BrokenAnswer":                     TestBrokenAnswer,
		"ConnectPoisoning":                 TestConnectPoisoning,
		"ConnectionTokensCannotRemoveOurs": TestConnectionTokensCannotRemoveOurs,
		"CookiesOfTheOrigin":               TestCookiesOfTheOrigin,
		"EncodedBodiesPassThrough":         TestEncodedBodiesPassThrough,
		"ExpectContinue":                   TestExpectContinue,
		"HTTP2Trailers":                    TestHTTP2Trailers,
		"HealthCheck":                      TestHealthCheck,
		"HopByHopHeadersOfTheOrigin":       TestHopByHopHeadersOfTheOrigin,
		"HostOfTheOrigin":                  TestHostOfTheOrigin,
		"IllegalHTTP2":                     TestIllegalHTTP2,
		"LargeAnswers":                     TestLargeAnswers,
		"NextOrigin":                       TestNextOrigin,
		"OriginCommand":                    TestOriginCommand,
		"OriginFailures":                   TestOriginFailures,
		"OutsideEveryRoom":                 TestOutsideEveryRoom,
		"RawRequests":                      TestRawRequests,
		"RequestTrailersStay":              TestRequestTrailersStay,
		"ReservedHeaders":                  TestReservedHeaders,
		"RetryPageIsForPages":              TestRetryPageIsForPages,
		"RoomHearsOfItsOrigin":             TestRoomHearsOfItsOrigin,
		"SlowOrigin":                       TestSlowOrigin,
		"StalledBody":                      TestStalledBody,
		"StalledVisitor":                   TestStalledVisitor,
		"Streaming":                        TestStreaming,
		"SwapLetsRequestsFinish":           TestSwapLetsRequestsFinish,
		"TargetIsKept":                     TestTargetIsKept,
		"TicketOnTheAnswer":                TestTicketOnTheAnswer,
		"TooManyInFlight":                  TestTooManyInFlight,
		"TrailersAndEarlyHints":            TestTrailersAndEarlyHints,
		"Tunnel":                           TestTunnel,
		"TunnelEndsWithTheOrigin":          TestTunnelEndsWithTheOrigin,
		"TunnelRefusedByTheOrigin":         TestTunnelRefusedByTheOrigin,
		"UnaskedSwitch":                    TestUnaskedSwitch,
		"UpgradeTunnelling":                TestUpgradeTunnelling,
	} {
		t.Run(name, f)
	}
}

// isOverNetHTTP is how a world knows that it is one of those.
func isOverNetHTTP(t *testing.T) bool { return strings.HasPrefix(t.Name(), "TestOverNetHTTP/") }
