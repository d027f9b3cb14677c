/** A waiting page to begin with: every state, no script, no request. */
export const example = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Please wait</title>
<style>
  body { margin: 0; min-height: 100vh; display: grid; place-items: center; font: 18px/1.5 system-ui, sans-serif; background: #f4f1ea; color: #222; }
  main { max-width: 32rem; padding: 2rem; text-align: center; }
  h1 { font-size: 1.8rem; }
</style>
</head>
<body>
<main>
{{#isEventPrequeueing}}
  <h1>We open in {{timeUntilEventStartHours}} h {{timeUntilEventStartHourMinutes}} min</h1>
  {{#shuffleAtEventStart}}<p>Everyone who is here then has the same chance.</p>{{/shuffleAtEventStart}}
{{/isEventPrequeueing}}
{{^isEventPrequeueing}}
  {{#isRejectQueue}}<h1>We are closed</h1><p>Please come back later.</p>{{/isRejectQueue}}
  {{^isRejectQueue}}
    <h1>You are in line</h1>
    {{#aheadKnown}}<p>{{ahead}} people are ahead of you.</p>{{/aheadKnown}}
    {{#waitTimeKnown}}<p>About {{waitTime}} minutes.</p>{{/waitTimeKnown}}
    <p>This page updates automatically.</p>
  {{/isRejectQueue}}
{{/isEventPrequeueing}}
{{#message}}<p><strong>{{message}}</strong></p>{{/message}}
<p><small>Your code: {{reference}}</small></p>
</main>
</body>
</html>
`
