// Shows the waiting page's notifications where only a worker may, and those that come by web push. It serves no page, and stores nothing.
onpush = e => {
const m = e.data.json(), until = new Date(m.until).toLocaleTimeString(m.lang, {hour: 'numeric', minute: '2-digit'})
e.waitUntil(registration.showNotification(m.title, {body: m.text.replace('{}', until), lang: m.lang, tag: 'anteroom', data: m.url, requireInteraction: true}))
}
onnotificationclick = e => {
e.notification.close()
e.waitUntil(clients.matchAll({type: 'window', includeUncontrolled: true}).then(all => {
const page = all.find(c => c.url == e.notification.data) || all[0]
return page ? page.focus() : clients.openWindow(e.notification.data)
}))
}
oninstall = () => skipWaiting()
