/** The stored notebooks, and what is refused of such. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { complaints } from '../../scripts/notebooks/check.mjs'
import { briefly, differences, unlike } from '../../scripts/notebooks/compare.mjs'
import { normalised, notebooksIn, printed, textHash } from '../../scripts/notebooks/document.mjs'
import { replayed } from '../../scripts/notebooks/replay.mjs'
import { typeErrors } from '../../scripts/notebooks/types.mjs'
import { Folder } from '../cli/support.ts'

const VERSION = '1.2.3'
const chunk = (name: string, length: number): Buffer => {
  const bytes = Buffer.alloc(length + 12)
  bytes.writeUInt32BE(length)
  bytes.write(name, 4, 'latin1')
  return bytes
}
const figure = (): string =>
  Buffer.concat([
    Buffer.from('89504e470d0a1a0a', 'hex'),
    chunk('IHDR', 13),
    chunk('IDAT', 20),
    chunk('IEND', 0),
  ]).toString('base64')

// biome-ignore lint/suspicious/noExplicitAny: notebooks are what a file says.
type Notebook = any

/** A title, a cell with a value, and one with times. */
function notebook(): Notebook {
  const cell = (k: number, source: string, output: object, tags: readonly string[] = []): object => ({
    cell_type: 'code',
    metadata: { tags },
    source,
    execution_count: k,
    outputs: [{ output_type: 'execute_result', data: output, metadata: {}, execution_count: k }],
  })
  const bare = {
    metadata: {},
    cells: [
      { cell_type: 'markdown', metadata: {}, source: '# A title' },
      cell(1, '1 + 1', { 'text/plain': '2' }),
      cell(2, 'times()', { 'text/plain': '3 ms', 'text/html': '<p>3 ms</p>' }, ['measured']),
    ],
  }
  return normalised(bare, textHash(bare, VERSION))
}

const said = (change: (n: Notebook) => void): string[] => {
  const changed = notebook()
  change(changed)
  return complaints(printed(changed), VERSION)
}

test('an executed notebook passes, and has one canonical form', () => {
  expect(said(() => {})).toEqual([])
  expect(normalised(notebook())).toEqual(notebook())
})

describe('rejected', () => {
  const data = (n: Notebook): Record<string, unknown> => n.cells[1].outputs[0].data
  test.each<[string, (n: Notebook) => void, RegExp]>([
    ['code that was changed', (n) => (n.cells[1].source = ['1 + 2']), /not of the present text/],
    ['prose that was changed', (n) => (n.cells[0].source = ['# Another']), /not of the present text/],
    [
      'another version',
      (n) => (n.metadata.sparsetile.text = textHash(n, '1.2.4')),
      /not of the present text/,
    ],
    ['nothing executed', (n) => (n.cells[2].execution_count = null), /cell 2 ran as/],
    ['a cell without outputs', (n) => (n.cells[1].outputs = []), /cell 1 shows nothing/],
    [
      'an error',
      (n) => n.cells[1].outputs.push({ output_type: 'error', ename: 'E', evalue: 'bad', traceback: [] }),
      /cell 1: E: bad/,
    ],
    [
      'warnings',
      (n) => n.cells[1].outputs.push({ output_type: 'stream', name: 'stderr', text: ['x'] }),
      /stderr/,
    ],
    ['SVG', (n) => (data(n)['image/svg+xml'] = ['<svg/>']), /SVG/],
    ['colours of terminals', (n) => (data(n)['text/plain'] = ['\u001b[33m2\u001b[39m']), /colours/],
    ['a damaged PNG', (n) => (data(n)['image/png'] = figure().slice(0, 60)), /damaged PNG/],
    ['outputs without text', (n) => delete data(n)['text/plain'], /text\/plain/],
    ['what an editor adds', (n) => (n.cells[1].metadata.scrolled = true), /not written as/],
    ['no title', (n) => n.cells.shift(), /no title/],
  ])('%s', (_, change, why) => {
    expect(said(change).join('\n')).toMatch(why)
  })

  test('a complete PNG is accepted', () => {
    expect(said((n) => (data(n)['image/png'] = figure())).filter((s) => s.includes('PNG'))).toEqual([])
  })
})

test('running again reproduces the stored outputs, except for times', () => {
  const again = notebook()
  again.cells[2].outputs[0].data['text/plain'] = ['4 ms']
  expect(differences(notebook(), again)).toEqual([])
  again.cells[1].outputs[0].data['text/plain'] = ['3']
  expect(differences(notebook(), again)).toEqual([expect.stringContaining('now:    text/plain: 3')])
  delete again.cells[2].outputs[0].data['text/html']
  expect(differences(notebook(), again).length).toBe(2)
})

test('a comparison measures briefly, and keeps other cells', () => {
  const long = notebook()
  for (const k of [1, 2]) long.cells[k].source = ['measureRounds(cpu, runs, { warmups: 40, rounds: 20 })']
  const [, first, second] = briefly(long).cells
  expect(first.source).toEqual(long.cells[1].source)
  expect(second.source).toBe('measureRounds(cpu, runs, { warmups: 2, rounds: 2 })')
})

test('cells without the tag `measured` do not depend on measured cells', () => {
  const folder = new Folder()
  const uses = notebook()
  uses.cells[2].source = ['export const ms = 3']
  const path = folder.file('some.ipynb', printed(uses))
  expect(typeErrors([path])).toEqual([])
  uses.cells.push({ ...uses.cells[1], source: ['ms + 1'] })
  folder.file('some.ipynb', printed(uses))
  expect(typeErrors([path])).toEqual([
    expect.stringMatching(/some\.ipynb, measured cells left out, cell 3 line 1:1: .* Cannot find name 'ms'/),
  ])
  folder.remove()
})

const { version } = JSON.parse(readFileSync('package.json', 'utf8'))
test.each(notebooksIn('notebooks'))('%s is up to date with its source', (path) => {
  expect(complaints(readFileSync(path, 'utf8'), version)).toEqual([])
})

describe('unmeasured cells run again', () => {
  test('reproduce the stored outputs, and measured ones give none', async () => {
    const stored = notebook()
    const ran = normalised(await replayed('some.ipynb', stored))
    expect(unlike(stored, ran)).toEqual([])
    const other = notebook()
    other.cells[1].outputs[0].data['text/plain'] = ['3']
    expect(unlike(other, ran)[0]).toMatch(/^cell 1 gives something else/)
  })

  test('show the arguments of `display`, and the last value, over lines and templates', async () => {
    const n = notebook()
    n.cells[1].source = [
      'const text = `a\n',
      'b)`\n',
      'const some = [\n',
      '  1,\n',
      ']\n',
      'some\n',
      '  .concat(2)\n',
      '  .join(text)',
    ]
    expect((await replayed('some.ipynb', n)).cells[1].outputs[0].data).toEqual({ 'text/plain': '1a\nb)2' })
    n.cells[1].source = [
      "import { display, table } from 'sparsetile/notebook'\n",
      'await display(table([{ a: 1 }]), table([{ a: 2 }]))',
    ]
    expect((await replayed('some.ipynb', n)).cells[1].outputs).toHaveLength(2)
  })

  test('fail with the message of the cell', async () => {
    const n = notebook()
    n.cells[1].source = ['absent + 1']
    await expect(replayed('some.ipynb', n)).rejects.toThrow('absent is not defined')
  })
})
