/** The matrices that `spt bench` finds in a folder. */
import { afterAll, expect, test } from 'vitest'
import { sources } from '../../bench/gpu/matrix.ts'
import { SptError } from '../../src/ast/diagnostic.ts'
import { Folder, MATRIX } from '../cli/support.ts'

const folder = new Folder()
afterAll(() => folder.remove())

test('any file of a matrix, whatever it is called', async () => {
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

test('a folder without one is said to be so', () => {
  const empty = new Folder()
  expect(() => sources(empty.path, ['mine'], false)).toThrow(SptError)
  expect(() => sources(empty.path, ['mine'], false)).toThrow('bench/no-matrix')
  empty.remove()
})
