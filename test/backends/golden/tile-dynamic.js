export function tile_0(x, w, y, m) {
  for (let block_x = 0; block_x < m; block_x++) {
    const x_shared = new Float64Array(16384);
    const thread = function* (thread_x) {
      const at_2 = Math.imul(block_x, 16384);
      for (let round = 0; round < 1024; round++) {
        const at = Math.imul(round, 16) + thread_x;
        x_shared[at] = x[at_2 + at];
      }
      yield;
      let y_at = 0;
      y_at = 0;
      for (let c = 0; c < 16384; c++) {
        y_at = y_at + x_shared[c] * w[Math.imul(c, 16) + thread_x];
      }
      const at_3 = Math.imul(block_x, 16) + thread_x;
      y[at_3] = y_at;
    };
    let waiting = [];
    for (let thread_x = 0; thread_x < 16; thread_x++) {
      waiting.push(thread(thread_x));
    }
    while (waiting.length > 0) waiting = waiting.filter((t) => !t.next().done);
  }
}
