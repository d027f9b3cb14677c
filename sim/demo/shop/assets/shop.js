const feed = new EventSource("/ticker");
feed.addEventListener("stock", (e) => {
  const now = JSON.parse(e.data);
  for (const el of document.querySelectorAll("[data-stock]")) el.textContent = now.stock[el.dataset.stock] + " left";
  const people = document.getElementById("people");
  if (people) people.textContent = now.inside === 1 ? "Nobody else is shopping now." : now.inside + " people are shopping now.";
});
addEventListener("pagehide", () => feed.close());
