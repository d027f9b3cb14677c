/*
 * The ledger of a waiting room: one coordinator role, two sites, one kind of unit.
 * README.md explains the model, its limits, and which sentence of the proof each assertion is.
 *
 * Nothing has to happen: every action may be taken late or never. So a process that crashes, stops
 * or is cut off is one that takes no further action, and a lost message is one that nobody takes.
 * A message is not stored either. Its receiver reads the counters of its sender, of now or of an
 * earlier moment, which is what a late, repeated or overtaken message would have said.
 */

#ifndef LIMIT
#define LIMIT 2
#endif
#ifndef MOST
#define MOST 3       /* units ever granted to one site: ends the search */
#endif
#ifndef BLOCK
#define BLOCK 1      /* units that the coordinator reserves ahead of its grants */
#endif
#ifndef HANDOVERS
#define HANDOVERS 1  /* sites whose role a second process takes over */
#endif

/* The record in the store, under epoch 1. A coordinator of epoch 2 ends it by compare-and-set. */
bool over;           /* epoch 2 has begun */
byte bound[2];       /* reserved for the site */
byte back[2];        /* the site's returns, as heard when the record was written */
byte recterm[2];     /* the site's process, likewise */

/* Two coordinators, of epochs 1 and 2; index 2*coordinator + site. */
byte G[4];           /* ever granted */
byte RS[4];          /* highest return heard */
byte term[4];        /* the site's newest process that is answered: 0 or 1 */
byte B[2];           /* epoch 1 may grant up to here */

/* Two sites. */
bool taken[2];       /* a second process has taken the journal over: the first cannot append */
byte inside[2];      /* sessions in the journal: visitors whom the origin sees */

/* Two processes of each site, of terms 0 and 1; index 2*site + process. */
bool synced[4];      /* has heard a coordinator */
byte g[4];           /* highest grant heard */
byte ret[4];         /* ever returned */
byte used[4];
bool ep2[4];         /* has heard epoch 2: ignores epoch 1 */
byte was[4];         /* ret at that moment */

#define POOL(c)    (LIMIT - (G[2*c] - RS[2*c]) - (G[2*c+1] - RS[2*c+1]))
#define FREE(q)    (g[q] - ret[q] - used[q])
#define BEGUN(c)   (c == 0 || over)
#define RUNS(s,p)  (p == 0 || taken[s])
#define OWNS(s,p)  (p == taken[s])

/* ---- Faults that are put in on purpose: scripts/model expects each of them to be found. ---- */

#ifdef NO_FENCE         /* the first process of a site can still append when a second has the journal */
#define APPENDS(s,p) true
#else
#define APPENDS(s,p) OWNS(s,p)
#endif
#ifdef NO_BOUND         /* grants leave before the bound that covers them is stored */
#define COVERED(c,s) true
#else
#define COVERED(c,s) (c == 1 || G[s] < B[s])
#endif
#ifdef NO_HEARD         /* a new process spends before a coordinator told it what its predecessor returned */
#define LEARNS(c,s,p) skip
#else
#define LEARNS(c,s,p) if :: ret[2*s+p] < RS[2*c+s] -> ret[2*s+p] = RS[2*c+s] :: else fi
#endif
#ifdef NO_TERM          /* the record does not say which process of a site was answered */
#define STORETERM(c,s,p) skip
#define MAYSTORE(c) true
#else
#define STORETERM(c,s,p) recterm[s] = (over -> 0 : p)
#define MAYSTORE(c) (c == 1 || !over)
#endif
#ifdef OLD_EPOCH        /* a site that has heard epoch 2 still believes epoch 1, and is believed by it */
#define YOUNG(c,q) true
#define TELLS(c,q) ret[q]
#else
#define YOUNG(c,q) (c == 1 || !ep2[q])
#define TELLS(c,q) (c == 0 && ep2[q] -> was[q] : ret[q])
#endif
#ifdef OLD_TERM         /* the coordinator hears the process that was replaced */
#define STALE(c,s,p) true
#else
#define STALE(c,s,p) (p == term[2*c+s])
#endif
#ifdef LOOSE_END        /* an end is not in the journal: the next process may believe that the session goes on */
bool ended[2];
#define ENDED(s) ended[s] = true
#define REVIVE(s) if :: ended[s] -> ended[s] = false; inside[s]++ :: else fi
#else
#define ENDED(s) skip
#define REVIVE(s) skip
#endif
#ifdef LOOSE_RETURN     /* a process returns units without an append, so a replaced one can */
#define MAYRETURN(s,p) true
#else
#define MAYRETURN(s,p) OWNS(s,p)
#endif
#ifdef NO_HOLD          /* a coordinator with a negative pool lets sites spend what they hear of */
#define MAYSPEND(c) true
#else
#define MAYSPEND(c) (POOL(c) >= 0)
#endif

/* ---- The invariant. ---- */

#define NEW 2*over   /* of the newest coordinator */

#define SITEOK(s,n) (RS[n+s] <= G[n+s] && inside[s] <= G[n+s] - RS[n+s])
#define PROCOK(s,p,n) (!synced[2*s+p] || g[2*s+p] <= G[n+s])
#define OWNEROK(s,p,n) (!(OWNS(s,p) && synced[2*s+p]) || \
	(ret[2*s+p] >= RS[n+s] && FREE(2*s+p) >= 0 && used[2*s+p] == inside[s]))

#define CHECK \
	assert(inside[0] + inside[1] <= LIMIT); \
	PROOF

#ifdef OUTSIDE_ONLY
#define PROOF skip
#else
#define PROOF \
	assert(SITEOK(0,NEW) && SITEOK(1,NEW)); \
	assert(PROCOK(0,0,NEW) && PROCOK(0,1,NEW) && PROCOK(1,0,NEW) && PROCOK(1,1,NEW)); \
	assert(OWNEROK(0,0,NEW) && OWNEROK(0,1,NEW) && OWNEROK(1,0,NEW) && OWNEROK(1,1,NEW))
#endif

/* ---- What a coordinator does. ---- */

/* It takes over from the record: what was reserved counts as granted. */
#define TAKEOVER d_step { \
	!over -> printf("coordinator 2 takes over from the record\n"); over = true; \
	G[2] = bound[0]; RS[2] = back[0]; term[2] = recterm[0]; \
	G[3] = bound[1]; RS[3] = back[1]; term[3] = recterm[1]; \
	bound[0] = 0; back[0] = 0; recterm[0] = 0; \
	bound[1] = 0; back[1] = 0; recterm[1] = 0; \
	CHECK }

/* Epoch 1 reserves ahead, or, for a site that is silent, not. Epoch 2 has no successor here: it need not store. */
#define RESERVE(s,n) d_step { \
	!over && G[s] + n <= MOST && (B[s] != G[s] + n || back[s] != RS[s]) -> printf("coordinator 1 stores a bound for site %d: %d\n", s, G[s] + n); \
	B[s] = G[s] + n; bound[s] = B[s]; back[s] = RS[s]; CHECK }

#define GRANT(c,s) d_step { \
	BEGUN(c) && POOL(c) >= 1 && COVERED(c,s) && G[2*c+s] < MOST -> printf("coordinator %d grants a unit to site %d\n", c+1, s); G[2*c+s]++; CHECK }

/* It hears how much a process has returned, all of it or less. */
#define REPORT(c,s,p,less) d_step { \
	BEGUN(c) && RUNS(s,p) && STALE(c,s,p) && TELLS(c,2*s+p) > RS[2*c+s] + less -> printf("coordinator %d hears from site %d, process %d: %d returned\n", c+1, s, p+1, TELLS(c,2*s+p) - less); \
	RS[2*c+s] = TELLS(c,2*s+p) - less; CHECK }

/* It hears a second process for the first time, and answers when that is in the record. */
#define SUCCEED(c,s) d_step { \
	BEGUN(c) && taken[s] && term[2*c+s] == 0 && YOUNG(c,2*s+1) && MAYSTORE(c) -> printf("coordinator %d hears from site %d, process 2, for the first time\n", c+1, s); \
	term[2*c+s] = 1; STORETERM(c,s,1); CHECK }

/* ---- What a process of a site does. ---- */

/* It hears a grant, the newest or an earlier one. Told to hold, it returns what is free at once. */
#define HEAR(c,s,p,less,hold) d_step { \
	BEGUN(c) && RUNS(s,p) && YOUNG(c,2*s+p) && (synced[2*s+p] || term[2*c+s] >= p) && \
	G[2*c+s] >= less && \
	(less == 0 || G[2*c+s] - less >= used[2*s+p] + RS[2*c+s]) && \
	(!synced[2*s+p] || G[2*c+s] - less > g[2*s+p] || c == 1 && !ep2[2*s+p]) && (hold || MAYSPEND(c)) -> printf("site %d, process %d hears from coordinator %d: %d granted; hold: %d\n", s, p+1, c+1, G[2*c+s] - less, hold); \
	synced[2*s+p] = true; \
	if :: c == 1 && !ep2[2*s+p] -> ep2[2*s+p] = true; was[2*s+p] = ret[2*s+p] :: else fi; \
	if :: G[2*c+s] - less > g[2*s+p] -> g[2*s+p] = G[2*c+s] - less :: else fi; \
	LEARNS(c,s,p); \
	if :: hold && FREE(2*s+p) > 0 && MAYRETURN(s,p) -> ret[2*s+p] = g[2*s+p] - used[2*s+p] :: else fi; \
	CHECK }

/* It admits a visitor: in the journal first. A process that cannot append stops. */
#define ADMIT(s,p) d_step { \
	RUNS(s,p) && synced[2*s+p] && FREE(2*s+p) >= 1 && APPENDS(s,p) -> printf("site %d, process %d admits a visitor\n", s, p+1); used[2*s+p]++; inside[s]++; CHECK }

#define RETURN(s,p) d_step { \
	RUNS(s,p) && synced[2*s+p] && FREE(2*s+p) >= 1 && MAYRETURN(s,p) -> printf("site %d, process %d returns a unit\n", s, p+1); ret[2*s+p]++; CHECK }

/* A session ends, in the journal first. */
#define END(s,p) d_step { \
	RUNS(s,p) && synced[2*s+p] && used[2*s+p] >= 1 && OWNS(s,p) -> printf("site %d, process %d ends a session\n", s, p+1); \
	used[2*s+p]--; inside[s]--; ENDED(s); CHECK }

/* A rate slot ends by the clock, the oldest first: in the same moment for every process that knows of it. */
#define LAPSE(s) d_step { \
	inside[s] >= 1 -> printf("site %d: a rate slot ends\n", s); inside[s]--; \
	if :: !taken[s] || used[2*s] >= 1 -> used[2*s]-- :: else fi; \
	if :: taken[s] -> used[2*s+1]-- :: else fi; CHECK }

/* A second process takes the journal over. */
#define RESTORE(s) d_step { \
	s < HANDOVERS && !taken[s] -> printf("site %d, process 2 takes the journal over\n", s); taken[s] = true; REVIVE(s); used[2*s+1] = inside[s]; CHECK }

#define PROCESS(s,p) \
	:: REPORT(0,s,p,0) :: REPORT(0,s,p,1) :: REPORT(1,s,p,0) :: REPORT(1,s,p,1) :: REPORT(1,s,p,2) \
	:: HEAR(0,s,p,0,true) :: HEAR(0,s,p,0,false) :: HEAR(1,s,p,0,true) :: HEAR(1,s,p,0,false) \
	:: HEAR(0,s,p,1,true) :: HEAR(0,s,p,1,false) :: HEAR(1,s,p,1,true) :: HEAR(1,s,p,1,false) \
	:: HEAR(0,s,p,2,true) :: HEAR(0,s,p,2,false) :: HEAR(1,s,p,2,true) :: HEAR(1,s,p,2,false) \
	:: ADMIT(s,p) :: RETURN(s,p) ENDS(s,p)

#ifdef SLOTS            /* the units are rate slots, not seats */
#define ENDS(s,p)
#define LAPSES :: LAPSE(0) :: LAPSE(1)
#else
#define ENDS(s,p) :: END(s,p)
#define LAPSES
#endif

init {
	d_step { synced[0] = true; synced[2] = true };
	do
	:: TAKEOVER
	:: RESERVE(0,0) :: RESERVE(0,BLOCK) :: RESERVE(1,0) :: RESERVE(1,BLOCK)
	:: GRANT(0,0) :: GRANT(0,1) :: GRANT(1,0) :: GRANT(1,1)
	:: SUCCEED(0,0) :: SUCCEED(0,1) :: SUCCEED(1,0) :: SUCCEED(1,1)
	:: RESTORE(0) :: RESTORE(1)
	PROCESS(0,0) PROCESS(0,1) PROCESS(1,0) PROCESS(1,1)
	LAPSES
	od
}
