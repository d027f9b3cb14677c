// Shows the waiting page's notifications where only a worker may. It serves no page, and stores nothing.
onnotificationclick = e => {
e.notification.close()
e.waitUntil(clients.matchAll({type: 'window', includeUncontrolled: true}).then(all => {
const page = all.find(c => c.url == e.notification.data) || all[0]
return page ? page.focus() : clients.openWindow(e.notification.data)
}))
}
oninstall = () => skipWaiting()
