// Other tabs of the visitor, which page.js keeps up to date, hear that the place is gone. Without them nothing is lost.
document.forms[0].onsubmit = e => { if (window.BroadcastChannel) new BroadcastChannel('anteroom-' + e.target.dataset.ref).postMessage({reason: 'left'}) }
