// Package published holds the three ways of sharing slots among data centres that the best
// known edge waiting room has described in public, as machines that run: a simulator gives
// them the visitors that it gives the product, so that anybody can see the difference.
// They are baselines for comparison and take no part in the product.
//
// # What is published
//
// A visitor's bucket is the minute of the first request. Free slots are
// min(L - active, R - admitted this minute) (slots). They are reserved for whole buckets,
// oldest first (reserve). A bucket that is reserved in full enters at its next check-in,
// wherever that is; one that is reserved in part is a race for the reserved number; new
// visitors enter only when everybody who waits has a reserved slot. With the random method
// nothing is reserved and every check-in is an attempt. What is raced for, and what is left
// for new visitors, is a pool: each data centre gets of it what its visitors of a past minute
// are of the limit, the rest may be taken anywhere ([Share]). Then
//
//   - [Even] (2021) divides both parts evenly among workers; the share is that of two
//     minutes ago;
//   - [Adapted] divides by fewer workers while the room is little used: workers x
//     utilisation^curve (workers); the share is that of the last minute;
//   - [Counters] counts in the data centre and then in one Anywhere counter for the world,
//     and lets in while the counter is below the slots (admits).
//
// Workers report to the object of their data centre every few seconds, and that to the one
// global object. What travels are counters that are added up: active users by the time at
// which they were last counted, which each visitor's cookie carries; those who wait by bucket
// and minute of the last check-in; admissions and visitors by minute. A place is kept for
// five minutes after the last check-in, so somebody who has left stands in the bucket so long.
//
// # Assumptions
//
// Where the descriptions are silent, what favours these designs was chosen:
//
//   - A pool is a budget for the minute: what is free plus what was already taken from it in
//     this minute, by all as far as known. Each worker (or counter) compares what it has taken
//     itself in this minute. So news that is late does not let a share be spent twice, except
//     at the turn of the minute.
//   - Active users are counted in cells of a twelfth of the session duration, not of a minute
//     ([Config].Cell): minute cells count those who left for up to a minute too long; this is
//     about what makes up for requests that are not reported yet. A place in line is counted in
//     minute cells and dropped between 4.5 and 5.5 minutes after the last check-in: five on average.
//   - Workers know what they did themselves at once. A data centre and its workers exchange in one
//     step, and the answer of the global object reaches all of its workers when it arrives; a data
//     centre that is cut off goes on with what its workers tell it. A new worker learns that at its
//     start. Nothing that was reported is ever lost: not in a cut, not with the global object,
//     which is durable, as are counters.
//   - Utilisation is that of the limit that is used more. A worker's share never exceeds the
//     pool. Shares are of the visitors seen in a minute, waiting or inside, relative to L; all
//     three ways have Anywhere slots, as in the published example of even division.
//   - Settings are known everywhere at once. Slots that a division leaves over are not given to
//     anybody (the published example: 113 among 10 workers is 11 each).
//   - Only minutes come from the local wall clock: buckets, admissions and visitors per minute. A
//     wrong clock touches no interval, session or place.
//   - A counter in the data centre answers in 1 ms. When the Anywhere counter cannot be reached,
//     nothing is let in by it and nobody waits for the answer.
//   - The estimated wait divides by the mean of the running minute and the two before it, and
//     is not rounded up to whole minutes.
//
// Not published, and so absent: any memory of ids. Requests with one cookie at the same time
// are each counted and each attempt; a waiting cookie can be used twice; nothing is bound to a
// client. There are no streams.
package published
