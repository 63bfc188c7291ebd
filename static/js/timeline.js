// The rung in use as a step chart, with a lane for each kind of mark below the rungs.
(function () {
  "use strict";
  const root = document.getElementById("steps");
  if (!root) return;
  const data = Charts.data("steps-data");
  const clock = Charts.clock(data.zone);
  const readout = root.querySelector(".readout");
  const legend = document.querySelector("[data-legend]");
  const NONE = -1;
  const laneRow = new Map(data.lanes.map((lane, number) => [lane.key, NONE - 1 - number]));
  const lowest = NONE - data.lanes.length;
  const tokens = { change: "st-unverified", reset: "st-usable", setting: "st-held", catalogue: "rung-2", operator: "rung-4" };
  const names = new Map([
    ...data.rungs.map((rung, index) => [index, rung]),
    [NONE, "none"],
    ...data.lanes.map((lane) => [laneRow.get(lane.key), lane.word]),
  ]);
  const rows = [...names.keys()].sort((one, other) => one - other);

  function chosen() {
    return new Set([...legend.querySelectorAll("input:checked")].map((box) => box.value));
  }

  function series() {
    const xs = [], ys = [];
    data.stretches.forEach(([start, end, row], number) => {
      xs.push(start); ys.push(row);
      const next = data.stretches[number + 1];
      if (!next || next[0] > end) { xs.push(end, end); ys.push(row, null); }
    });
    return [xs, ys];
  }

  function hatch(plot, colour, left, width) {
    const { ctx, bbox } = plot;
    const top = bbox.top, bottom = plot.valToPos(NONE - 0.5, "y", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(left, top, width, bottom - top);
    ctx.clip();
    ctx.fillStyle = colour("sunken");
    ctx.fillRect(left, top, width, bottom - top);
    ctx.strokeStyle = colour("st-stale");
    ctx.lineWidth = uPlot.pxRatio;
    const step = 7 * uPlot.pxRatio, height = bottom - top;
    for (let x = left - height; x < left + width; x += step) {
      ctx.beginPath();
      ctx.moveTo(x, bottom);
      ctx.lineTo(x + height, top);
      ctx.stroke();
    }
    ctx.restore();
  }

  function drawGaps(plot, colour) {
    for (const [start, end] of data.gaps) {
      const left = plot.valToPos(start, "x", true);
      hatch(plot, colour, left, Math.max(plot.valToPos(end, "x", true) - left, uPlot.pxRatio));
    }
  }

  function drawStretches(plot, colour) {
    const { ctx } = plot;
    const thick = 9 * uPlot.pxRatio;
    for (const [start, end, row] of data.stretches) {
      const left = plot.valToPos(start, "x", true), y = plot.valToPos(row, "y", true);
      ctx.fillStyle = colour(row === NONE ? "st-exhausted" : `rung-${row}`);
      ctx.fillRect(left, y - thick / 2, Math.max(plot.valToPos(end, "x", true) - left, 1.5 * uPlot.pxRatio), thick);
    }
  }

  const shapes = {
    change: (ctx, x, y, r) => ctx.arc(x, y, r, 0, 2 * Math.PI),
    reset: (ctx, x, y, r) => path(ctx, [[x, y - r * 1.2], [x + r * 1.2, y], [x, y + r * 1.2], [x - r * 1.2, y]]),
    setting: (ctx, x, y, r) => ctx.rect(x - r, y - r, 2 * r, 2 * r),
    catalogue: (ctx, x, y, r) => path(ctx, [[x, y - r * 1.1], [x + r * 1.2, y + r], [x - r * 1.2, y + r]]),
    operator: (ctx, x, y, r) => {
      const a = r * 0.4;
      ctx.rect(x - a, y - r * 1.1, 2 * a, r * 2.2);
      ctx.rect(x - r * 1.1, y - a, r * 2.2, 2 * a);
    },
  };

  function path(ctx, points) {
    points.forEach(([x, y], number) => (number ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
    ctx.closePath();
  }

  function drawMarks(plot, colour) {
    const { ctx } = plot, shown = chosen(), r = 4.5 * uPlot.pxRatio;
    ctx.save();
    ctx.font = colour.font.replace("12px", `${10 * uPlot.pxRatio}px`);
    ctx.textBaseline = "middle";
    ctx.textAlign = "left";
    const last = new Map();
    for (const [lane, at, count] of data.marks) {
      if (!shown.has(lane)) continue;
      const x = plot.valToPos(at, "x", true), y = plot.valToPos(laneRow.get(lane), "y", true);
      ctx.fillStyle = colour(tokens[lane]);
      ctx.beginPath();
      shapes[lane](ctx, x, y, r);
      ctx.fill();
      last.set(lane, [...(last.get(lane) || []), [x, y, count]]);
    }
    ctx.fillStyle = colour("muted");
    for (const marks of last.values()) {
      marks.forEach(([x, y, count], number) => {
        const room = (marks[number + 1]?.[0] ?? Infinity) - x;
        if (count > 1 && room > 26 * uPlot.pxRatio) ctx.fillText(String(count), x + r * 1.6, y);
      });
    }
    ctx.restore();
  }

  function tell(plot) {
    const { left } = plot.cursor;
    if (left == null || left < 0) {
      readout.textContent = "";
      return;
    }
    const at = plot.posToVal(left, "x");
    const near = (data.end - data.start) * (7 / Math.max(1, plot.bbox.width / uPlot.pxRatio));
    const stretch = data.stretches.find(([start, end]) => start <= at && at < end);
    const parts = [clock(at)];
    if (stretch) parts.push(`${stretch[2] === NONE ? "no rung serves" : `${names.get(stretch[2])} serves`}, since ${clock(stretch[0])}`);
    else if (data.gaps.some(([start, end]) => start <= at && at < end)) parts.push("nobody looked");
    const shown = chosen();
    for (const [lane, when, , words] of data.marks) {
      if (shown.has(lane) && Math.abs(when - at) <= near) parts.push(words);
    }
    readout.textContent = parts.join(" · ");
  }

  function make(canvas, colour, width) {
    const options = {
      width, height: 306, padding: [8, 34, 0, 0], legend: { show: false },
      scales: {
        x: { time: false, range: () => [data.start, data.end] },
        y: { range: () => [lowest - 0.6, data.rungs.length - 0.4] },
      },
      axes: [
        {
          stroke: colour("muted"), font: colour.font, size: 30,
          splits: (plot) => Charts.thin(data.ticks, plot.bbox.width / uPlot.pxRatio, 62).map(([at]) => at),
          values: (_, splits) => splits.map((at) => data.ticks.find((tick) => tick[0] === at)[1]),
          grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 },
        },
        {
          stroke: colour("muted"), font: colour.font, size: 86, gap: 6,
          splits: () => rows, values: (_, splits) => splits.map((row) => names.get(row)),
          grid: { stroke: colour("line"), width: 1 }, ticks: { show: false },
        },
      ],
      series: [
        {},
        { stroke: colour("muted"), width: 1, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
      ],
      cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
      hooks: {
        drawAxes: [(plot) => drawGaps(plot, colour)],
        draw: [(plot) => drawStretches(plot, colour), (plot) => drawMarks(plot, colour)],
        setCursor: [tell],
      },
    };
    return new uPlot(options, series(), canvas);
  }

  readout.hidden = false;
  legend.querySelectorAll("input").forEach((box) => (box.hidden = false));
  const renew = Charts.draw(root, make);
  legend.addEventListener("change", renew);
  legend.addEventListener("submit", (event) => event.preventDefault());
})();
