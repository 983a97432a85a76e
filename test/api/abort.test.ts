/** Long calls end with the reason of their signal, leave nothing allocated, and can be repeated. */
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type Progress, runSync, Work } from '../../src/ast/work.ts'
import { load, readTensor } from '../../src/node.ts'

const SPMM = 'sparsetile/kernels/spmm.spt'

/** Options that abort at the n-th part of a call, and the parts that began. */
function abortAt(n: number) {
  const controller = new AbortController()
  const parts: Progress[] = []
  const onProgress = (p: Progress): void => {
    parts.push(p)
    if (parts.length === n) controller.abort()
  }
  return { options: { signal: controller.signal, onProgress }, parts, controller }
}

/** Aborts a call at each of its parts, and returns the number of parts. */
async function abortEverywhere(
  call: (options: ReturnType<typeof abortAt>['options']) => Promise<unknown>,
  after: () => void = () => {},
): Promise<number> {
  for (let n = 1; ; n++) {
    const { options, parts, controller } = abortAt(n)
    const error: unknown = await call(options).then(
      () => null,
      (e: unknown) => e,
    )
    after()
    if (!controller.signal.aborted) {
      expect(error).toBe(null)
      return parts.length
    }
    // An abort at the last part may come after the end of the work.
    if (error !== null) expect(error).toBe(controller.signal.reason)
    else return parts.length
    expect((error as DOMException).name).toBe('AbortError')
  }
}

test('load and readTensor', async () => {
  expect(await abortEverywhere((o) => load(SPMM, o))).toBeGreaterThan(3)
  const file = join(mkdtempSync(join(tmpdir(), 'spt-')), 'a.mtx')
  writeFileSync(file, '%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 3.5\n')
  expect(await abortEverywhere((o) => readTensor(file, o))).toBe(1)
})

test('timers run during long host work, and a signal ends it', async () => {
  const controller = new AbortController()
  function* spin() {
    for (;;) {
      const start = performance.now()
      while (performance.now() - start < 5);
      yield
    }
  }
  setTimeout(() => controller.abort())
  const work = new Work({ signal: controller.signal })
  await expect(work.run(spin())).rejects.toThrow('aborted')
  function* cleaned(log: string[]) {
    try {
      yield
      yield
    } finally {
      log.push('end')
    }
  }
  const log: string[] = []
  await expect(work.run(cleaned(log))).rejects.toBe(controller.signal.reason)
  expect(log).toEqual(['end'])
  runSync(cleaned(log))
  expect(log).toHaveLength(2)
})
