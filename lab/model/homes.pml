/*
 * A session that stays at home: home, another site where the visitor is a guest, and the coordinator
 * between them, in steps of one second. README.md explains the model.
 *
 * In each second each of the two links works or does not, and the visitor may send a request to either
 * site. All ages are in seconds and stop at FAR.
 */

#ifndef DURATION
#define DURATION 10  /* of a session */
#endif
#define FAR (2*DURATION + 3)

#define CUTAFTER 3   /* engine.cutAfter */
#define DEADAFTER 3  /* engine.DeadAfter, rounded up to whole seconds */
#define AWAYDELAY 1  /* home waits this much longer for word of a guest; awayDelay is more, for links slower than those here */

/* Faults that are put in on purpose: scripts/model expects each of them to be found. */
#ifdef NO_MARGIN        /* another site admits a guest for longer than home needs to notice that it cannot hear it */
#define MARGIN 3
#else
#define MARGIN 4        /* awayMargin: cutAfter and a heartbeat */
#endif
#ifdef NO_APART         /* home does not keep the seat when it cannot hear the other site */
#define APART false
#else
#define APART (apart < CUTAFTER)
#endif
#ifdef NO_SILENT        /* the coordinator does not say that a site is silent */
#define SILENT(age) false
#else
#define SILENT(age) (age >= DEADAFTER)
#endif

byte origin;            /* age of the last request that the origin has seen */

byte last;              /* at home: age of the last request known */
byte away = FAR;        /* of those that another site told of */
byte answered;          /* of the last report that the coordinator answered */
byte apart = FAR;       /* since home knew that some site may not be heard */
bool silent;            /* the coordinator's last word to home */

bool guest;             /* the other site knows the visitor */
byte sure = FAR;        /* there: age of the request that home confirmed last */
byte seen = FAR;        /* of the last request there */

byte heard;             /* at the coordinator: age of the last report of the other site */
byte asks = FAR;        /* of the request that home is to be told of */
bool up, uh, met, asked;

#ifdef NO_TOLD          /* home counts from the request that it was asked about, not from the one it confirmed */
#define TOLD skip
#else
#define TOLD away = MIN(away, last)
#endif

#define MIN(a,b) (a < b -> a : b)
#define OLDER(age) age = (age < FAR -> age + 1 : FAR)

init {
	do
	:: atomic {
		/* The links of this second: other site to coordinator, home to coordinator. */
		if :: up = false :: up = true fi;
		if :: uh = false :: uh = true fi;
		/* Does the other site ask home about a request, and hold it until the answer? */
		if :: asked = false :: asked = true fi;
		d_step {
			/* The other site reports each request until home has confirmed it. */
			if
			:: up ->
				heard = 0;
				if :: guest && seen < sure -> asks = MIN(asks, seen) :: else fi;
				if :: asked -> asks = 0 :: else fi
			:: else
			fi;
			/* Home and the coordinator talk. */
			if
			:: uh ->
				answered = 0; silent = SILENT(heard);
				if
				:: asks < FAR -> away = MIN(away, asks); last = MIN(last, asks)
				:: else
				fi
			:: else
			fi;
			met = up && uh && (asks < FAR);
			if :: uh -> asks = FAR :: else fi;
			/* Home's answer reaches the other site in the same second, or not at all. */
			if :: met -> guest = true; sure = MIN(sure, last); TOLD :: else fi;
			if :: met && asked -> origin = 0; seen = 0; sure = 0 :: else fi;
			if :: silent || answered >= CUTAFTER -> apart = 0 :: else fi;
			asked = false; met = false
		};
		/* Requests that a site admits without asking. */
		if
		:: skip
		:: last < DURATION -> last = 0; origin = 0
		:: guest && sure + MARGIN < DURATION -> seen = 0; origin = 0
		fi;
		d_step {
			printf("links: other site %d, home %d; age of the last request: origin %d, home %d, told to home %d; guest %d, confirmed %d\n", up, uh, origin, last, away, guest, sure);
			up = false; uh = false;
			OLDER(origin); OLDER(last); OLDER(away); OLDER(answered); OLDER(apart);
			OLDER(sure); OLDER(seen); OLDER(heard); OLDER(asks);
			if :: guest && sure >= DURATION && seen >= DURATION -> guest = false; sure = FAR; seen = FAR :: else fi
		};
		/* Home gives the seat away when the session is over by all that it knows. */
		if
		:: last < DURATION || away < DURATION + AWAYDELAY
		:: last >= DURATION && away < FAR && APART && away < 2*DURATION
		:: else ->
			/* The seat outlasts what the origin has seen, and what the other site may still admit. */
			assert(origin >= DURATION);
			assert(!(guest && sure + MARGIN < DURATION));
			break
		fi
	}
	od
}
