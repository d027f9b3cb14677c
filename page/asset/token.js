// Called by Cloudflare's or the operator's script with the token of a visitor who has solved the challenge.
var anteroomSolved = token => {
const me = document.getElementById('challenge').dataset
document.cookie = me.cookie + '=' + me.cdata + '.' + token + ';path=/;max-age=300' + (self != top && location.protocol == 'https:' ? ';SameSite=None;Secure;Partitioned' : ';SameSite=Lax')
dispatchEvent(Object.assign(new Event('pageshow'), {persisted: 1}))
}
