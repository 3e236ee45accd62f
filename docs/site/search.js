/*
 * The search of the documentation, and the menu of narrow windows. It reads the index of the site's own folder when the
 * field is used for the first time, and keeps the page as it is without JavaScript. It asks no server.
 */
"use strict";

/* The sections that contain every word of the query, the best first. A section is [page, heading, address, text]. */
function searchSections(sections, query) {
    const words = query.toLowerCase().split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word));
    const found = [];
    if (!words.length)
        return found;
    for (const section of sections) {
        const [page, heading, , text] = section.map((part) => part.toLowerCase());
        let score = 0;
        for (const word of words) {
            const points = scoreOf(word, page, heading, text);
            if (!points) {
                score = 0;
                break;
            }
            score += points;
        }
        if (score)
            found.push({ section, score });
    }
    return found.sort((a, b) => b.score - a.score).map((one) => one.section);
}

/* How well a word fits a section: 0 if it is not there. */
function scoreOf(word, page, heading, text) {
    const times = text.split(word).length - 1;
    const named = heading.replace(/\(\)$/, "") === word.replace(/\(\)$/, "");
    return (named ? 100 : 0) + (heading.includes(word) ? 20 : 0) + (page.includes(word) ? 8 : 0) + Math.min(times, 6);
}

/* The part of the text around the first word that stands in it. */
function excerpt(text, query) {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean), low = text.toLowerCase();
    const places = words.map((word) => low.indexOf(word)).filter((at) => at >= 0);
    const at = Math.max(0, (places.length ? Math.min(...places) : 0) - 60);
    const from = at ? text.indexOf(" ", at) + 1 : 0, part = text.slice(from, from + 200);
    const whole = from + 200 < text.length ? part.slice(0, part.lastIndexOf(" ")) + " …" : part;
    return (from ? "… " : "") + whole;
}

function startMenu() {
    const open = document.getElementById("open"), menu = document.getElementById("menu");
    open.hidden = false;
    document.documentElement.classList.add("js");
    open.addEventListener("click", () => {
        const shown = menu.classList.toggle("shown");
        open.setAttribute("aria-expanded", String(shown));
    });
}

function startSearch(root) {
    const form = document.getElementById("search"), field = document.getElementById("query");
    const results = document.getElementById("results"), page = document.getElementById("page");
    const list = document.getElementById("found"), count = document.getElementById("count");
    let asked = false;

    function load() {
        if (asked)
            return;
        asked = true;
        const script = document.createElement("script");
        script.src = root + "search-index.js";
        script.onload = show;
        document.head.append(script);
    }

    function entry(section) {
        const [title, heading, address, text] = section, item = document.createElement("li");
        const link = document.createElement("a"), where = document.createElement("span");
        const words = document.createElement("p");
        link.href = root + address;
        link.textContent = heading || title;
        where.textContent = heading && heading !== title ? title : "";
        words.textContent = excerpt(text, field.value);
        item.append(link, " ", where, words);
        return item;
    }

    function show() {
        const query = field.value.trim();
        results.hidden = !query;
        page.hidden = !!query;
        if (!query || !window.searchIndex)
            return;
        const found = searchSections(window.searchIndex, query);
        count.textContent = found.length === 1 ? "1 section" : `${found.length} sections`;
        list.replaceChildren(...found.slice(0, 30).map(entry));
    }

    function close() {
        field.value = "";
        show();
        field.focus();
    }

    function move(event, step) {
        const links = [field, ...list.querySelectorAll("a")], at = links.indexOf(document.activeElement);
        if (at < 0 || !links[at + step])
            return;
        links[at + step].focus();
        event.preventDefault();
    }

    form.hidden = false;
    field.addEventListener("focus", load);
    field.addEventListener("input", show);
    form.addEventListener("submit", (event) => {
        event.preventDefault();
        list.querySelector("a")?.click();
    });
    results.addEventListener("click", (event) => {
        if (event.target.closest("a")) { /* it may lead to this very page, which has to be there again by then */
            field.value = "";
            show();
        }
    });
    document.addEventListener("keydown", (event) => {
        const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
        if (event.key === "/" && plain && document.activeElement !== field) {
            field.focus();
            event.preventDefault();
        } else if (event.key === "Escape" && field.value)
            close();
        else if (field.value && (event.key === "ArrowDown" || event.key === "ArrowUp"))
            move(event, event.key === "ArrowDown" ? 1 : -1);
    });
}

if (typeof document !== "undefined") {
    startMenu();
    startSearch(document.currentScript.dataset.root);
}
