// How the spend of each paid rung grew, against its budget.
(function () {
  "use strict";

  function dashed(ctx, colour, from, to) {
    ctx.save();
    ctx.strokeStyle = colour;
    ctx.lineWidth = 1.5 * uPlot.pxRatio;
    ctx.setLineDash([6 * uPlot.pxRatio, 4 * uPlot.pxRatio]);
    ctx.beginPath();
    ctx.moveTo(...from);
    ctx.lineTo(...to);
    ctx.stroke();
    ctx.restore();
  }

  function word(plot, colour, text, x, y, align) {
    const { ctx } = plot;
    ctx.save();
    ctx.font = colour.font.replace("12px", `${11 * uPlot.pxRatio}px`);
    ctx.fillStyle = colour("muted");
    ctx.textAlign = align;
    ctx.textBaseline = "bottom";
    ctx.fillText(text, x, y);
    ctx.restore();
  }

  function drawLimit(plot, colour, data) {
    if (data.limit === null) return;
    const { left, width } = plot.bbox, y = plot.valToPos(data.limit, "y", true);
    dashed(plot.ctx, colour("st-exhausted"), [left, y], [left + width, y]);
    word(plot, colour, data.limitWord, left + width - 4 * uPlot.pxRatio, y - 2 * uPlot.pxRatio, "right");
  }

  function drawReached(plot, colour, data, clock) {
    if (data.reached === null) return;
    const { ctx } = plot, { top, height, left, width } = plot.bbox, x = plot.valToPos(data.reached, "x", true);
    const y = plot.valToPos(data.limit, "y", true), r = 5 * uPlot.pxRatio;
    ctx.save();
    ctx.strokeStyle = ctx.fillStyle = colour("ink");
    ctx.lineWidth = uPlot.pxRatio;
    ctx.beginPath();
    ctx.moveTo(x, top);
    ctx.lineTo(x, top + height);
    ctx.stroke();
    ctx.fillRect(x - r, y - r, 2 * r, 2 * r);
    ctx.restore();
    const isLeft = x > left + width / 2;
    word(plot, colour, `reached ${clock(data.reached)}`, x + (isLeft ? -1 : 1) * 8 * uPlot.pxRatio, top + height - 4 * uPlot.pxRatio, isLeft ? "right" : "left");
  }

  function start(root) {
    const data = Charts.data(root.dataset.curve), clock = Charts.clock(data.zone);
    const readout = root.querySelector(".readout");

    function tell(plot) {
      const { left } = plot.cursor;
      if (left == null || left < 0) {
        readout.textContent = "";
        return;
      }
      const at = plot.posToVal(left, "x");
      const last = data.points.filter(([when]) => when <= at).at(-1);
      const isKnown = last && at <= data.until;
      readout.textContent = isKnown ? `${clock(at)} · about $${last[1].toFixed(2)} spent` : clock(at);
    }

    function make(canvas, colour, width) {
      const room = Math.max(...data.marks.map(([, text]) => text.length)) * 7 + 16;
      return new uPlot({
        width, height: 230, padding: [10, 34, 0, 0], legend: { show: false },
        scales: { x: { time: false, range: () => [data.start, data.end] }, y: { range: () => [0, data.top] } },
        axes: [
          {
            stroke: colour("muted"), font: colour.font, size: 30,
            splits: (plot) => Charts.thin(data.ticks, plot.bbox.width / uPlot.pxRatio, 70).map(([at]) => at),
            values: (_, splits) => splits.map((at) => data.ticks.find((tick) => tick[0] === at)[1]),
            grid: { stroke: colour("line"), width: 1 }, ticks: { stroke: colour("line"), width: 1 },
          },
          {
            stroke: colour("muted"), font: colour.font, size: room, gap: 6,
            splits: () => data.marks.map(([usd]) => usd),
            values: (_, splits) => splits.map((usd) => data.marks.find((mark) => mark[0] === usd)[1]),
            grid: { stroke: colour("line"), width: 1 }, ticks: { show: false },
          },
        ],
        series: [
          {},
          { stroke: colour(`rung-${data.rung}`), width: 2.5, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
        ],
        cursor: { y: false, drag: { x: false, y: false }, points: { show: false } },
        hooks: {
          draw: [(plot) => drawLimit(plot, colour, data), (plot) => drawReached(plot, colour, data, clock)],
          setCursor: [tell],
        },
      }, [data.points.map(([at]) => at), data.points.map(([, usd]) => usd)], canvas);
    }

    readout.hidden = false;
    Charts.draw(root, make);
  }

  document.querySelectorAll("[data-curve]").forEach(start);
})();
