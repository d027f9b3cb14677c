package anteroom

import "time"

// Bounds and defaults. docs/limits.md repeats them with their reasons; a test holds the
// two together.
const (
	DefaultSessionDuration = 5 * time.Minute
	MinSessionDuration     = time.Second
	MaxSessionDuration     = 24 * time.Hour

	DefaultPlaceHold = 5 * time.Minute
	MinPlaceHold     = 30 * time.Second
	MaxPlaceHold     = time.Hour

	MinPass  = 10 * time.Second
	MaxPass  = 5 * time.Minute
	PassSkew = 5 * time.Second // of an edge's clock

	MaxTouches  = 1000             // that an edge reports at once
	MaxTouchAge = 10 * time.Second // of one, when it is reported

	DefaultLotteryRound = 30 * time.Second
	MinLotteryRound     = 5 * time.Second
	MaxLotteryRound     = 4 * time.Minute
	MinLotteryMaxWait   = 10 * time.Second
	MaxLotteryMaxWait   = 24 * time.Hour

	MinRefresh = time.Second
	MaxRefresh = 10 * time.Minute

	DefaultSessionNetworks = 8
	MaxSessionNetworks     = 8

	MaxUsers = 1<<31 - 1 // both limits

	MaxRooms             = 10_000
	MaxRoutesPerRoom     = 100
	MaxNameLength        = 64
	MaxDescriptionLength = 1024
	MaxSuffixLength      = 64
	MaxPathLength        = 1024
	MaxTemplateBytes     = 1 << 20

	MaxEventsPerRoom = 100
	MinEventDuration = time.Minute
	MinPrequeue      = 5 * time.Minute
	MaxOccurrences   = 1000 // of a repeated event with an end
	MaxStampLength   = 64
	MaxRampSteps     = 100 // of an event

	// aheadMost and aheadWork bound what [Settings.Ahead] knows: as far as waits are forecast, mostly, and how many events are looked
	// at for it, each at every moment at which one of them changes something.
	aheadMost = 4 * time.Hour
	aheadWork = 400

	MaxMessageLength = 280 // characters of the message to the line

	MaxRemaining = 1_000_000_000 // of what an operator says is left for visitors

	MaxLanes = 8 // of a room

	MaxRulesPerRoom     = 100
	MaxExpressionLength = 4096

	MaxTicketBytes    = 256      // sealed and encoded
	MaxCookies        = 150      // pairs in one request; more is 431
	MaxHeaderBytes    = 32 << 10 // request line and headers
	MaxHeaderLines    = 100      // more is 431
	MaxTargetBytes    = 8 << 10  // more is 414
	MaxAskBytes       = 512      // more of a target with a question of the waiting page, whose longest has a ticket
	MaxLogoBytes      = 32 << 10 // of the built-in page
	MaxLogoPixels     = 1000     // a side
	MaxBodyUnadmitted = 64 << 10 // bytes read of a body before the page answers

	MaxLine     = 5_000_000 // waiting and dormant tickets of one room
	MaxStreams  = 5_000     // open streams of one node
	MaxHeld     = 1_000     // requests of one room held for a slot about to come free
	MaxConsumed = 2_000_000 // used tickets remembered by one room

	MaxWebhooks             = 100 // of an installation
	MaxWebhookURL           = 2048
	MaxMinutesBefore        = 7 * 24 * 60 // a week
	MaxSaturatedMinutes     = 24 * 60
	DefaultLongerThan       = 1_000
	DefaultMinutesBefore    = 15
	DefaultSaturatedMinutes = 10

	// QueueIsFullAfter is the forecast beyond which a line counts as full.
	QueueIsFullAfter = 24 * time.Hour
)
