/** Sparse results on the device: three kernels over one tensor, of which two update it, without a copy through the host. */
import { expect, test } from 'vitest'
import { bindResident, convertForKernel, upload } from '../../src/device.ts'
import { coords, dense, devices, load } from '../../src/node.ts'

const PROGRAM = `import "sparsetile/kernels/formats.spt"
kernel scores(n: size, d: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis k = dense_fixed(d)
  buffer S: f32[i, j] inout
  buffer Q: f32[i, k] in
  buffer K: f32[jd, k] in
  iterate clear [i, j] as SS { S[i, j] = 0.0 }
  iterate score [i, j, k] as SSR { S[i, j] += Q[i, k] * K[j, k] }
}
kernel normalise(n: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  buffer S: f32[i, j] inout
  buffer peak: f32[i] local
  buffer total: f32[i] local
  iterate highest [i, j] as SR { peak[i] max= S[i, j] }
  iterate weigh [i, j] as SS { S[i, j] = exp(S[i, j] - peak[i]) }
  iterate sum [i, j] as SR { total[i] += S[i, j] }
  iterate share [i, j] as SS { S[i, j] = S[i, j] / total[i] }
}
kernel mix(n: size, d: size) {
  axis i = dense_fixed(n)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  axis k = dense_fixed(d)
  buffer S: f32[i, j] in
  buffer V: f32[jd, k] in
  buffer O: f32[i, k] out
  iterate sum [i, j, k] as SRS { O[i, k] += S[i, j] * V[j, k] }
}`
const ROWS = [0, 0, 1, 2]
const COLUMNS = [0, 2, 1, 0]
const [Q, K, V] = [
  [1, 0, 0, 1, 1, 1],
  [1, 2, 3, 4, 5, 6],
  [1, 2, 10, 20, 100, 200],
]

function expected(): number[] {
  const at = (m: readonly number[], row: number, k: number): number => m[2 * row + k]!
  const S = ROWS.map((i, e) => [0, 1].reduce((s, k) => s + at(Q, i, k) * at(K, COLUMNS[e]!, k), 0))
  const weights = S.map((s) => Math.exp(s))
  const share = weights.map((w, e) => w / weights.reduce((t, x, f) => t + (ROWS[f] === ROWS[e] ? x : 0), 0))
  return Array.from({ length: 6 }, (_, x) =>
    share.reduce((o, w, e) => o + (ROWS[e] === x >> 1 ? w * at(V, COLUMNS[e]!, x % 2) : 0), 0),
  )
}

for (const kind of ['cpu', 'webgpu'] as const)
  test(`${kind}: two kernels update a sparse tensor, a third one reads it, and nothing is copied`, async () => {
    await using device = await devices[kind]()
    const program = await load(PROGRAM)
    const built = (name: string) => program.kernel(name).as('S', 'csr').build(device)
    const [scores, normalise, mix] = [await built('scores'), await built('normalise'), await built('mix')]
    const pattern = await upload(device, coords([3, 3], [ROWS, COLUMNS], Float32Array.of(0, 0, 0, 0)))
    const S = await convertForKernel(scores, 'S', pattern)
    const first = await bindResident(scores, { S, Q: dense([3, 2], Q), K: dense([3, 2], K) })
    const second = await bindResident(normalise, { S })
    const third = await bindResident(mix, { S, V: dense([3, 2], V) })
    let copies = 0
    for (const word of ['upload', 'download'] as const) {
      const copy = device[word].bind(device) as (...args: unknown[]) => never
      device[word] = (...args: unknown[]) => {
        copies++
        return copy(...args)
      }
    }
    for (let run = 0; run < 2; run++) for (const b of [first, second, third]) await b.run()
    expect(copies).toBe(0)
    const { values } = await third.get('O')
    expect(copies).toBe(1)
    expect([...values!].map((x) => Number(x.toPrecision(5)))).toEqual(
      expected().map((x) => Number(x.toPrecision(5))),
    )
    expect((await third.verify()).verdict).toBe('agrees')
    for (const x of [first, second, third, S, pattern]) x.free()
  })

test('a tensor in another format is rejected', async () => {
  await using device = await devices.cpu()
  const program = await load(PROGRAM)
  const scores = await program.kernel('scores').as('S', 'csr').build(device)
  const mix = await program.kernel('mix').as('S', 'bsr', 2).build(device)
  const pattern = await upload(device, coords([3, 3], [ROWS, COLUMNS], Float32Array.of(0, 0, 0, 0)))
  const S = await convertForKernel(scores, 'S', pattern)
  await expect(bindResident(mix, { S, V: dense([3, 2], V) })).rejects.toThrow('not in the kernel')
})

test('an update of a shared tensor is rejected if the format stores coordinates that the tensor does not have', async () => {
  const program = await load(`import "sparsetile/kernels/formats.spt"
    kernel increment(m: size, n: size) {
      axis i = dense_fixed(m)
      axis j = sparse_variable(i, n)
      buffer S: f32[i, j] inout
      iterate add [i, j] as SS { S[i, j] = S[i, j] + 1 }
    }`)
  const device = await devices.cpu()
  const pattern = await upload(device, coords([3, 3], [ROWS.slice(1), COLUMNS.slice(1)], [1, 2, 3], 'f32'))
  for (const [format, code] of [
    ['bsr', 'run/resident'],
    ['csr', undefined],
  ] as const) {
    const built = await program
      .kernel()
      .as('S', format, ...(format === 'bsr' ? [2] : []))
      .build(device)
    const S = await convertForKernel(built, 'S', pattern)
    const bound = bindResident(built, { S })
    if (code === undefined) await bound
    else await expect(bound).rejects.toThrow(code)
  }
})
