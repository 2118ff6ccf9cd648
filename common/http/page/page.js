// Status page of a job: polls server 0 for status and history, and shows both. All of server 0's data are shown as text, never as markup.
'use strict';

const kEveryMs = 1000;
const kLostAfterMs = 4000;  // without an answer
const byId = id => document.getElementById(id);
const color = name => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

const known = (value, show) => value === undefined || value === null ? '–' : show(value);
const percent = x => (100 * x).toFixed(2) + ' %';
const whole = x => Math.round(x).toLocaleString('en');
// At least n significant digits, without zeros behind the point.
const digits = n => x => Math.abs(x) >= 10 ** n ? whole(x) : String(Number(Number(x).toPrecision(n)));
function duration(seconds) {
  const s = Math.round(seconds);
  const two = x => String(x).padStart(2, '0');
  return s < 3600 ? `${Math.floor(s / 60)}:${two(s % 60)}`
                  : `${Math.floor(s / 3600)}:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}`;
}
function bytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  for (; n >= 1024 && unit < 4; ++unit) n /= 1024;
  return digits(3)(n) + ' ' + units[unit];
}

// A cell is a text, or {text, kind}.
function fillTable(table, heads, rows, none) {
  const row = (tag, cells) => {
    const tr = document.createElement('tr');
    for (const cell of cells) {
      const element = document.createElement(tag);
      element.textContent = typeof cell === 'object' ? cell.text : cell;
      if (typeof cell === 'object') element.className = cell.kind;
      tr.append(element);
    }
    return tr;
  };
  const empty = row('td', [{text: none, kind: 'quiet'}]);
  empty.firstChild.colSpan = heads.length;
  table.replaceChildren(row('th', heads), ...(rows.length ? rows.map(r => row('td', r)) : [empty]));
}
const number = text => ({text, kind: 'number'});

// Vertical lines at events.
const marks = {
  id: 'marks',
  afterDatasetsDraw(chart) {
    const {ctx, chartArea: area, scales: {x}} = chart;
    const colors = {checkpoint: color('green'), start: color('quiet'), end: color('quiet')};
    for (const event of chart.marks || []) {
      const at = x.getPixelForValue(event.elapsed_time);
      if (at < area.left || at > area.right) continue;
      const isCheckpoint = event.kind === 'checkpoint';
      ctx.save();
      ctx.strokeStyle = colors[event.kind] || color('red');
      ctx.globalAlpha = isCheckpoint ? 0.45 : 0.9;
      ctx.setLineDash(isCheckpoint ? [2, 4] : []);
      ctx.beginPath();
      ctx.moveTo(at, area.top);
      ctx.lineTo(at, area.bottom);
      ctx.stroke();
      ctx.restore();
    }
  },
};

const charts = [];
// series: [{label, from, column, color, fill, points}]
function addChart(id, series, options = {}) {
  const chart = new Chart(byId(id), {
    type: 'line',
    plugins: [marks],
    data: {datasets: series.map(s => ({label: s.label, data: [], borderWidth: s.points ? 0 : 1.5,
                                       showLine: !s.points, pointRadius: s.points ? 3.5 : 0,
                                       pointHitRadius: 6, fill: s.fill || false,
                                       // Functions, because points would keep the colour that they were created with.
                                       borderColor: () => color(s.color),
                                       pointBackgroundColor: () => color(s.color),
                                       backgroundColor: () => color(s.color) + (s.fill ? '66' : '')}))},
    options: {
      animation: false, parsing: false, normalized: true, maintainAspectRatio: false,
      interaction: {mode: 'nearest', axis: 'x', intersect: false},
      scales: {
        x: {type: 'linear', ticks: {callback: duration, maxTicksLimit: 8, precision: 0}},
        y: {stacked: options.stacked || false, beginAtZero: options.zero || false,
            suggestedMin: options.min, ticks: {maxTicksLimit: 6}},
      },
      plugins: {
        legend: {display: series.length > 1, position: 'top', align: 'end',
                 labels: {boxWidth: 10, boxHeight: 10}},
        tooltip: {callbacks: {title: items => items.length ? 'after ' + duration(items[0].parsed.x) : '',
                              label: item => `${item.dataset.label}: ${digits(4)(item.parsed.y)}`}},
      },
    },
  });
  chart.series = series;
  charts.push(chart);
}

function addMetricChart(id, column) {
  addChart(id, [
    {label: 'training', from: 'points', column, color: 'blue'},
    {label: 'validation', from: 'evaluations', column: 'validation/' + column, color: 'orange', points: true}]);
}

function paint(chart) {
  for (const axis of Object.values(chart.options.scales)) {
    axis.ticks.color = color('quiet');
    axis.grid = {color: color('line'), borderColor: color('line')};
  }
  chart.options.plugins.legend.labels.color = color('quiet');
}

// The name of a metric's figure; names that end in "accuracy" are shares of samples.
const metricName = column => column.replace(/^main\//, '').replaceAll('_', ' ');
const figureOf = name => name.endsWith('accuracy') ? percent : digits(4);

// Networks may have more metrics than there are charts on the page.
function addMissingCharts(points) {
  for (const column of Object.keys(points).filter(c => c.startsWith('main/'))) {
    if (charts.some(chart => chart.series.some(s => s.column === column))) continue;
    const figure = document.createElement('figure');
    const caption = document.createElement('figcaption');
    const frame = document.createElement('div');
    const canvas = document.createElement('canvas');
    caption.textContent = metricName(column)[0].toUpperCase() + metricName(column).slice(1);
    frame.className = 'chart';
    canvas.id = column;
    frame.append(canvas);
    figure.append(caption, frame);
    byId('rate').closest('figure').before(figure);
    addMetricChart(column, column);
  }
}

function showHistory(history) {
  addMissingCharts(history.points);
  for (const chart of charts) {
    chart.series.forEach((s, i) => {
      const from = history[s.from];
      const data = [];
      from.elapsed_time.forEach((x, k) => {
        const y = (from[s.column] || [])[k];
        if (y !== null && y !== undefined) data.push({x, y});
      });
      chart.data.datasets[i].data = data;
    });
    const times = history.points.elapsed_time;
    chart.options.scales.x.min = times.length ? Math.max(0, times[0] - history.points.seconds[0]) : 0;
    chart.options.scales.x.max = times.length ? times[times.length - 1] : 1;
    chart.marks = history.events;
    paint(chart);
    chart.update('none');
  }
  const words = {start: 'start', checkpoint: 'checkpoint', went_back: 'rolled back',
                 worker_lost: 'worker lost', failure: 'failure', end: 'end'};
  const rows = history.events.slice(-30).reverse().map(e => [
    number(duration(e.elapsed_time)), number(whole(e.round)), words[e.kind] || e.kind,
    {text: e.text, kind: 'text'}]);
  fillTable(byId('events'), [number('time'), number('round'), 'event', ''], rows,
            'no events yet: checkpoints and faults will be listed here');
  const end = history.events.find(e => e.kind === 'end');
  if (end) ended = end.text;
}

function showStatus(status) {
  document.title = `${status.job_name} – Kumo`;
  byId('job').textContent = status.job_name;
  byId('phase').textContent = status.phase;
  byId('phase').className = 'phase ' + status.phase;
  byId('waits').textContent = [
    status.waits_for && 'waits for ' + status.waits_for,
    status.trouble,
    status.checkpoint_failure && 'the newest checkpoint failed: ' + status.checkpoint_failure,
    status.curves_failure && 'curves cannot be written: ' + status.curves_failure,
  ].filter(Boolean).join('; ');
  const part = status.total_samples ? (status.samples || 0) / status.total_samples
                                    : status.rounds ? status.round / status.rounds : 0;
  byId('bar').style.width = (100 * Math.min(1, part)).toFixed(2) + '%';
  // The metrics of the network, also those that only an evaluation has; before they are known, the
  // usual ones.
  const told = [...new Set(Object.keys(status).map(key => key.replace(/^validation\//, ''))
      .filter(key => key.startsWith('main/')))];
  const metrics = told.length ? told : ['main/loss', 'main/accuracy'];
  const figures = [
    ['round', whole(status.round) + (status.rounds ? ' / ' + whole(status.rounds) : '')],
    ['epoch', known(status.epoch, whole) + ' / ' + known(status.epochs, whole)],
    ...metrics.map(m => [metricName(m), known(status[m], figureOf(m))]),
    ...metrics.map(m => ['validation ' + metricName(m), known(status['validation/' + m], figureOf(m))]),
    ['learning rate', known(status.lr, digits(4))],
    ['samples/s', known(status.samples_per_second, whole)],
    ['elapsed', known(status.elapsed_time, duration)],
    ['remaining', known(status.eta, duration)],
    ['last checkpoint', known(status.last_checkpoint, whole)],
  ];
  byId('figures').replaceChildren(...figures.map(([name, value]) => {
    const box = document.createElement('div');
    const label = document.createElement('span');
    const figure = document.createElement('b');
    label.textContent = name;
    figure.textContent = value;
    box.append(label, figure);
    return box;
  }));
  const silent = p => p.silent === undefined ? null : {text: `silent for ${whole(p.silent)} s`, kind: 'text bad'};
  const failed = p => p.failure ? {text: p.failure, kind: 'text bad'} : null;
  const ms = x => number(known(x, digits(3)));
  fillTable(byId('workers'),
            ['worker', 'host', 'state', 'leases', number('samples/s'), number('compute ms'),
             number('wait ms'), number('network ms'), number('sent'), number('received')],
            status.workers.map(w => [
              w.name, w.host, failed(w) || silent(w) || {text: w.state || '', kind: 'text'},
              w.partitions.length > 8 ? `${w.partitions.length} partitions` : w.partitions.join(', ') || '–',
              number(known(w.samples_per_second, whole)), ms(w.compute_ms), ms(w.wait_ms),
              ms(w.network_ms), number(bytes(w.bytes_sent)), number(bytes(w.bytes_received))]),
            'no worker has joined yet');
  fillTable(byId('servers'),
            ['shard', 'host', 'state', number('version'), number('memory'), number('sent'), number('received')],
            status.servers.map(s => [
              String(s.index), s.host || '–',
              failed(s) || silent(s) ||
                  {text: s.waits_for ? 'waits for ' + s.waits_for
                         : s.ready ? 'ready' : s.seen_seconds_ago === undefined ? 'has not joined yet' : 'loading',
                   kind: 'text'},
              number(whole(s.version)), number(bytes(s.shard_bytes)), number(bytes(s.bytes_sent)),
              number(bytes(s.bytes_received))]),
            'no server');
}

let heard = Date.now(), last = null, ended = null;
function showConnection() {
  const box = byId('connection');
  const over = ended !== null || (last && (last.phase === 'finished' || last.phase === 'failed'));
  const lost = Date.now() - heard > kLostAfterMs;
  box.hidden = !over && !lost;
  if (over) {
    box.textContent = 'The job has ended' + (ended ? ': ' + ended : '') + '. The page shows its last state.';
  } else if (lost) {
    const seconds = Math.round((Date.now() - heard) / 1000);
    box.textContent = `Connection lost ${seconds} s ago: server 0 cannot be reached, or the job has ended.` +
        (last ? ` Last seen: round ${last.round}.` : '') + ' The page reconnects automatically.';
    byId('phase').textContent = 'connection lost';
    byId('phase').className = 'phase';
  }
}

async function ask(path) {
  const answer = await fetch(path, {cache: 'no-store', signal: AbortSignal.timeout(kLostAfterMs)});
  if (!answer.ok) throw new Error(path + ': ' + answer.status);
  return answer.json();
}

async function turn() {
  try {
    const [status, history] = await Promise.all([ask('/status.json'), ask('/history.json')]);
    heard = Date.now();
    ended = null;
    last = status;
    showStatus(status);
    showHistory(history);
  } catch (error) {
    // The shown data stay; showConnection tells how old they are.
  }
  showConnection();
  setTimeout(turn, kEveryMs);
}

Chart.defaults.font.family = 'system-ui, sans-serif';
Chart.defaults.font.size = 11;
addMetricChart('loss', 'main/loss');
addMetricChart('accuracy', 'main/accuracy');
addChart('rate', [{label: 'samples/s', from: 'points', column: 'samples_per_second', color: 'blue'}], {zero: true});
addChart('lr', [{label: 'learning rate', from: 'points', column: 'lr', color: 'blue'}], {zero: true});
addChart('parts', [
  {label: 'compute', from: 'points', column: 'compute_ms', color: 'blue', fill: 'origin'},
  {label: 'wait', from: 'points', column: 'wait_ms', color: 'orange', fill: '-1'},
  {label: 'network', from: 'points', column: 'network_ms', color: 'green', fill: '-1'}],
         {stacked: true, zero: true});
charts.forEach(paint);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
  for (const chart of charts) {
    paint(chart);
    chart.update('none');
  }
});
turn();
