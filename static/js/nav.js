// On a phone the navigation scrolls sideways: where one is comes into view.
document.querySelector(".nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
