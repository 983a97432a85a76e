/** Prepared kernels that are collected without `free()` are reported, in development. */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { LeakDetector } from '../../src/api/built/leak-detector.ts'
import type { Device } from '../../src/node.ts'
import { disposedDevices } from '../../src/runtime/device-checks.ts'
import { Folder } from '../cli/support.ts'
import { sample } from '../support/cases.ts'
import { property } from '../support/property.ts'

const device = (kind: 'cpu' | 'webgpu' | 'cuda'): Device => ({ kind, name: 'some chip' }) as unknown as Device

/** A registry whose targets are collected when they are told to be. */
function fake() {
  const held = new Map<object, [target: object, held: never]>()
  const said: string[] = []
  let collected: (held: never) => void = () => {}
  const kernels = new LeakDetector(
    (f) => {
      collected = f as typeof collected
      return {
        register: (target, value, token) => void held.set(token, [target, value as never]),
        unregister: (token) => void held.delete(token),
      }
    },
    (text) => said.push(text),
  )
  return {
    kernels,
    said,
    collect(target: object) {
      const entry = held.get(target)
      held.delete(target)
      if (entry) collected(entry[1])
    },
  }
}

property([
  fc.array(
    fc.record({ free: fc.boolean(), kind: fc.constantFrom('cpu', 'webgpu', 'cuda'), dispose: fc.boolean() }),
  ),
])('exactly the unfreed kernels with device memory are reported', (all) => {
  const { kernels, said, collect } = fake()
  const made = all.map((how, k) => {
    const [on, prepared] = [device(how.kind), {}]
    kernels.watch(prepared, `kernel${k}`, on, 1000 * k)
    return { ...how, prepared, on }
  })
  for (const m of made) {
    if (m.free) kernels.forget(m.prepared)
    if (m.dispose) disposedDevices.add(m.on)
  }
  for (const { prepared } of made) collect(prepared)
  const forgotten = all.flatMap(({ free, kind, dispose }, k) =>
    free || dispose || kind === 'cpu' ? [] : [`kernel${k}`],
  )
  expect(
    said.map((text) => /kernel kernel\d+|kernel\d+/.exec(text)![0].replace('kernel kernel', 'kernel')),
  ).toEqual(forgotten)
})

const folder = new Folder()
afterAll(() => folder.remove())

/** What switches the reports off: a process for one of them in each run. */
const OFF = [{ NODE_ENV: 'production' }, { NODE_ENV: 'test' }, { SPT_LEAKS: '0' }]

describe('a process', () => {
  const script = folder.file(
    'leak.mjs',
    `import { devices, load, dense } from '${new URL('../../dist/src/node.js', import.meta.url).href}'
const program = await load(\`kernel twice(n: size) {
  axis i = dense_fixed(n)
  buffer X: f32[i] inout
  iterate s [i] as S { X[i] = X[i] * 2 }
}
schedule twice.auto choose { otherwise plain }
schedule twice.plain {}\`)
const gpu = await devices.webgpu({ adapter: 'swiftshader' })
const inputs = () => ({ X: new Float32Array(1000) })
const kept = await (await program.kernel().build(gpu)).bind(inputs())
async function chosen() {
  await (await (await program.kernel().schedule('auto').build(gpu)).bind(inputs())).run()
}
async function automatic() {
  await (await (await program.kernel().split('i', 2).undo().build(gpu)).bind(inputs())).run()
}
async function named(isFreed) {
  const prepared = await (await program.kernel().schedule('plain').build(gpu)).bind(inputs())
  await prepared.run()
  if (isFreed) prepared.free()
}
const freed = () => named(true)
await chosen()
await automatic()
await named(false)
await freed()
for (let k = 0; k < 5; k++) {
  await new Promise((done) => setTimeout(done, 10))
  globalThis.gc()
}
await new Promise((done) => setTimeout(done, 50))
kept.free()
await gpu.dispose()
process.exit(0)
`,
  )
  const run = async (env: Record<string, string>) => {
    const { SPT_LEAKS: _, NODE_ENV: __, ...rest } = process.env
    const command = ['--expose-gc', script]
    const { stderr } = await promisify(execFile)(process.execPath, command, { env: { ...rest, ...env } })
    return stderr.split('\n').filter((line) => line !== '')
  }

  test('names the call that made each kernel, and skips freed ones', async () => {
    const said = await run({})
    expect(said.length).toBe(3)
    for (const name of ['chosen', 'automatic', 'named'])
      expect(
        said.some((line) => new RegExp(`made at ${name} \\(file:.*leak\\.mjs:\\d+:\\d+\\)`).test(line)),
      ).toBe(true)
    expect(said[0]).toMatch(
      /^sparsetile: binding of twice was collected without free\(\); its .* MiB on webgpu/,
    )
  })

  test.each(sample<Record<string, string>>(OFF, 3))('says nothing where %j', async (env) => {
    expect(await run(env)).toEqual([])
  })
})
