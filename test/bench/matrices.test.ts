/** The matrices that `spt bench` finds in a folder. */
import { mkdirSync } from 'node:fs'
import { afterAll, expect, test, vi } from 'vitest'
import { FAMILIES } from '../../bench/families.ts'
import { bench } from '../../bench/gpu/index.ts'
import { sources } from '../../bench/gpu/matrix.ts'
import { type Options, Session } from '../../bench/gpu/session.ts'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { Folder, MATRIX, spt } from '../cli/support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

test('any file of a matrix, with any name', async () => {
  for (const name of ['mine.mtx', 'cora.mtx', 'list.edges', 'b.smtx', 'c.npz', 'd.mtx.gz', 'notes.txt'])
    folder.file(name, MATRIX)
  const all = sources(folder.path, [], false)
  expect(all.found.map((s) => s.name)).toEqual([
    'cora',
    'b',
    'c',
    'd',
    'list',
    'mine',
    'arxiv-like',
    'reddit-like',
  ])
  expect(all.missing).toEqual([])
  const { found, missing } = sources(folder.path, ['mine', 'pubmed'], false)
  expect([found.map((s) => s.name), missing]).toEqual([['mine'], ['pubmed']])
  expect(() => sources(folder.path, ['mine', 'yours'], false)).toThrow('there is no matrix yours')
  expect((await found[0]!.read()).indices).toHaveLength(4)
})

/** Nothing of them is drawn. */
const REGULAR: ReadonlySet<string> = new Set(['arrow', 'finite-elements', 'mixed-radix', 'stencil'])

/** `toEqual` takes a microsecond and more for each element. */
const isSame = (a: Int32Array, b: Int32Array): boolean =>
  a.length === b.length && a.every((x, k) => x === b[k])

test('members of families, of any size and seed', async () => {
  for (const name of Object.keys(FAMILIES)) {
    const asked = [`${name}:300`, `${name}:300:2`, `${name}:300`]
    const [one, other, again] = await Promise.all(
      sources(folder.path, asked, false).found.map((s) => s.read()),
    )
    expect(one!.indptr.length).toBe(one!.rows + 1)
    expect(one!.indptr.at(-1)).toBe(one!.indices.length)
    expect(one!.indices.every((j) => j >= 0 && j < one!.columns)).toBe(true)
    expect(one!.rows).toBeGreaterThan(50)
    expect(isSame(again!.indices, one!.indices)).toBe(true)
    if (!REGULAR.has(name)) expect(isSame(other!.indices, one!.indices)).toBe(false)
  }
  const [wrong] = sources(folder.path, ['road:x'], false).found
  await expect(wrong!.read()).rejects.toThrow('bench/no-matrix')
  expect(() => sources(folder.path, ['rood:300'], false)).toThrow('there is no matrix rood:300')
})

test('a folder without matrices is reported', () => {
  const empty = new Folder()
  expect(() => sources(empty.path, ['mine'], false)).toThrow(SptError)
  expect(() => sources(empty.path, ['mine'], false)).toThrow('bench/no-matrix')
  empty.remove()
})

test('of two files with one name the second has its ending', () => {
  const both = new Folder()
  for (const name of ['cora.mtx', 'cora.npz', 'b.el', 'b.mtx', 'arxiv-like.mtx']) both.file(name, MATRIX)
  const names = (asked: string[]) => sources(both.path, asked, false).found.map((s) => s.name)
  const others = ['arxiv-like.mtx', 'b', 'b.mtx', 'cora.npz']
  expect(names([])).toEqual(['cora', ...others, 'arxiv-like', 'reddit-like'])
  // In the order that they are asked for.
  expect(names(['b.mtx', 'cora'])).toEqual(['b.mtx', 'cora'])
  expect(names(['reddit-like', 'cora', 'b'])).toEqual(['reddit-like', 'cora', 'b'])
  expect(() => names(['nope'])).toThrow(
    expect.objectContaining({
      diagnostics: [
        expect.objectContaining({
          expected: expect.stringMatching(/^some of cora, arxiv-like.mtx, b, b.mtx, cora.npz, /),
        }),
      ],
    }),
  )
  both.remove()
})

/** Options with what is said, on both streams. */
function asking(data: string): Options & { readonly said: string[] } {
  const said: string[] = []
  const say = (text: string): void => void said.push(text.trimEnd())
  const rest = { json: undefined, schedules: [], matrices: [], widths: [32] }
  return { ...rest, data, quick: true, minutes: 1, out: say, err: (text) => say(`err: ${text}`), said }
}

test('files without a sparse matrix are left out, once; only such files are an error', async () => {
  const mine = new Folder()
  mine.file('dense.mtx', '%%MatrixMarket matrix array real general\n1 2\n1\n2\n')
  mine.file('cut.mtx', MATRIX.slice(0, -8))
  const names = async (session: Session): Promise<string[]> => {
    const all: string[] = []
    for await (const A of session.matrices()) all.push(A.name)
    return all
  }
  await expect(names(new Session(asking(mine.path), undefined))).rejects.toThrow('holds a sparse matrix')
  mine.file('good.mtx', MATRIX)
  const options = asking(mine.path)
  const session = new Session(options, undefined)
  expect([await names(session), await names(session)]).toEqual([['good'], ['good']])
  expect(options.said).toEqual([
    expect.stringMatching(/^err: cut is left out: io\//),
    expect.stringMatching(
      /^err: dense is left out: bench\/no-matrix: .*dense.mtx' holds no sparse matrix: a dense array$/,
    ),
  ])
  mine.remove()
})

test('omitted data are named', async () => {
  const two = new Folder()
  for (const name of ['z.mtx', 'a.mtx', 'm.mtx']) two.file(name, MATRIX)
  const options = { ...asking(two.path), matrices: ['z', 'a', 'm'] }
  const session = new Session(options, undefined)
  session.suite = 'spmv'
  const seen: string[] = []
  const late = vi.spyOn(session, 'late').mockImplementation(() => seen.length > 0)
  for await (const A of session.matrices()) seen.push(A.name)
  expect([seen, session.unmeasured]).toEqual([['z'], ['spmv a', 'spmv m']])
  late.mockRestore()
  // A suite that does not even begin.
  expect(await bench(['spmv', 'gemm'], { ...options, minutes: 0 })).toBe(false)
  expect(options.said).toContain('out of time after 0 minutes; not measured: spmv, gemm')
  two.remove()
})

const made = vi.hoisted(() => vi.fn())
vi.mock('../../bench/gpu/blocks.ts', async (original) => ({
  ...(await original<typeof import('../../bench/gpu/blocks.ts')>()),
  blockMatrices: made,
  halves: made,
}))

test('the device is opened before data are generated', async () => {
  vi.stubEnv('SPT_LIBCUDA', folder.at('libcuda.so'))
  const options = asking(folder.path)
  expect(await bench(['block-sparse', 'sampled-blocks', 'gemm'], options)).toBe(false)
  vi.unstubAllEnvs()
  expect(made).not.toHaveBeenCalled()
  expect(options.said.slice(0, 3)).toEqual(
    ['block-sparse', 'sampled-blocks', 'gemm'].map((s) =>
      expect.stringMatching(`^${s} ended early: device/absent`),
    ),
  )
})

test('a missing folder is an error', async () => {
  mkdirSync(folder.at('data'))
  const { code, err } = await spt(['bench', 'spmm', '--data', folder.at('dta')])
  expect(code).toBe(1)
  expect(err).toContain(`error[io/not-found]: there is no folder '${folder.at('dta')}'`)
  expect(err).toContain('did you mean: `data`?')
})
