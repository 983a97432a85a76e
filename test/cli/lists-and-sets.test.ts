/** Lists and sets that formats take, on the command line as in the library. */
import { afterAll, describe, expect, test } from 'vitest'
import { npyChunks } from '../../src/io/numpy/npz-write.ts'
import { Folder, spt } from './support.ts'

const folder = new Folder()
afterAll(() => folder.remove())
const program = folder.file(
  'k.spt',
  `import "sparsetile/kernels/formats.spt"
format chosen(msk: set) over (i, j) {
  part in_mask = csr where (held(msk))
  part rest = coo
}
kernel k(m: size, n: size) {
  axis i = dense_fixed(m)
  axis j = sparse_variable(i, n)
  axis jd = dense_fixed(n)
  buffer A: f32[i, j] in
  buffer B: f32[jd] in
  buffer C: f32[i] out
  iterate s [i, j] as SR { C[i] += A[i, j] * B[j] }
}
schedule k.blocks { A as vbr(rows, cols) }
schedule k.masked { A as chosen(msk) }
schedule k.pick choose { when (nnz(A) > 3) blocks
  when (nnz(A) > 0) masked
  otherwise plain }
schedule k.plain { A as bsr(2) }
schedule k.others { A as vbr(own, cols) }
schedule k.both choose by search { use blocks or plain }
schedule k.formats choose by search {
  format F in chosen(msk), csr where (m > 1)
  A as F
}
`,
)
const npy = (name: string, shape: number[], ...xs: number[]): string =>
  folder.file(name, Buffer.concat([...npyChunks(Int32Array.from(xs), shape, 'i32')]))
const entries = ['1 1 1', '1 3 2', '2 2 3', '3 1 4']
const matrix = (name: string, lines: readonly string[]): string =>
  folder.file(
    name,
    `%%MatrixMarket matrix coordinate real general\n3 3 ${lines.length}\n${lines.join('\n')}\n`,
  )
const A = matrix('a.mtx', entries)
const few = matrix('few.mtx', entries.slice(2))
const none = matrix('none.mtx', [])
const msk = matrix('msk.mtx', entries.slice(1, 2))
const rows = npy('rows.npy', [3], 0, 1, 3)
const cols = npy('cols.npy', [3], 0, 2, 3)
const lists = ['--bind', `rows=${rows}`, '--bind', `cols=${cols}`]
const sets = ['--bind', `msk=${msk}`]

describe.each([
  ['run', ['--verify']],
  ['explain', ['--device', 'cpu']],
  ['emit', ['--target', 'js']],
] as const)('spt %s', (command, more) => {
  const of = (schedule: string, ...args: string[]) =>
    spt([command, program, '--schedule', schedule, ...more, ...args])

  test.each([
    ['blocks', ['--bind', `A=${A}`, ...lists]],
    ['masked', ['--bind', `A=${A}`, ...sets]],
    ['pick', ['--bind', `A=${A}`, ...lists]],
    ['pick', ['--bind', `A=${few}`, ...sets]],
    // What the other schedules of a choice take comes along.
    ['pick', ['--bind', `A=${A}`, ...lists, ...sets]],
    ['pick', ['--bind', `A=${few}`, ...lists, ...sets]],
    ['pick', ['--bind', `A=${none}`, ...lists, ...sets]],
  ])('takes what %s takes', async (schedule, args) => {
    const { code, err } = await of(schedule, ...args)
    expect(err).toBe('')
    expect(code).toBe(0)
  })

  test.each([
    ['blocks', ['--bind', `A=${A}`, ...sets], 'msk'],
    ['pick', ['--bind', `A=${A}`, ...lists, '--bind', `own=${rows}`], 'own'],
    ['pick', ['--bind', `Q=${few}`], 'Q'],
  ])('rejects what %s does not take', async (schedule, args, name) => {
    const { code, err } = await of(schedule, ...args)
    expect(err).toContain(`error[bind/unknown-name]: kernel k has no buffer or axis ${name}`)
    expect(code).toBe(1)
  })
})

describe.each([
  ['tune', ['--trials', '4', '--strategy', 'random', '--json', '--seed', '1']],
  ['show', ['--survey', '4']],
] as const)('spt %s --space', (command, more) => {
  const of = (space: string, ...args: string[]) => spt([command, program, '--space', space, ...more, ...args])

  test.each([
    ['both', [...lists, '--bind', `A=${A}`]],
    ['formats', [...sets, '--bind', `A=${A}`]],
    ['both', [...lists, ...sets, '--bind', `A=${A}`]],
  ])('takes what formats of %s take', async (space, args) => {
    const { code, out } = await of(space, ...args)
    expect(code).toBe(0)
    if (command === 'show') return
    const { trials } = JSON.parse(out) as { trials: { outcome: { status: string } }[] }
    expect(trials.map((t) => t.outcome.status)).toEqual(trials.map(() => 'measured'))
    expect(trials.length).toBe(2)
  })

  test.each(['Q', 'row'])('rejects %s', async (name) => {
    const { code, err } = await of('both', ...lists, '--bind', `A=${A}`, '--bind', `${name}=${rows}`)
    expect(err).toContain(`error[bind/unknown-name]: kernel k has no buffer or axis ${name}`)
    expect(code).toBe(1)
  })
})

test('a list has one dimension', async () => {
  const wide = npy('wide.npy', [1, 3], 0, 1, 3)
  const given = ['--bind', `A=${A}`, '--bind', `rows=${wide}`, '--bind', `cols=${cols}`]
  for (const args of [
    ['run', program, '--schedule', 'blocks', ...given],
    ['format', A, `rows=${wide}`, `cols=${cols}`, '--as', 'vbr(rows, cols)'],
  ])
    expect((await spt(args)).err).toContain('error[bind/rank]')
})
