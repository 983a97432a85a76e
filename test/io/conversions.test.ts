/** Files of other kinds: the error says what to type, and what it says works where Python is there. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { gzipSync } from 'node:zlib'
import { afterAll, expect, test } from 'vitest'
import type { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { readTensor } from '../../src/io/index.ts'
import { elements } from './support.ts'

const folder = mkdtempSync(join(tmpdir(), 'spt-conversions-'))
afterAll(() => rmSync(folder, { recursive: true }))

const hintFor = async (path: string): Promise<string> => {
  const error = (await Promise.resolve()
    .then(() => readTensor(path))
    .catch((e) => e)) as SptError
  expect(error.diagnostics[0]).toMatchObject({ code: 'io/unknown-extension' })
  return error.diagnostics[0]!.hint ?? ''
}

test.each(
  '.mat .tns .pt .pth .bin .h5 .hdf5 .h5ad .parquet .xlsx .pkl .pickle .rb .rua .tar.gz .bz2 .zip .npz.gz'.split(
    ' ',
  ),
)('%s', async (ending) => {
  const command = await hintFor(`x/some file${ending}`)
  expect(command).toMatch(/^convert the file: (?:python3 -c ".*"|[a-z2]+ (?:xzf )?'.*')$/)
  expect(command).toContain('x/some file')
  expect(command).not.toMatch(/FILE|NEW/)
})

test('special characters of file names are not repeated in commands; unknown files have no command', async () => {
  for (const name of ["a'$(rm x)'.mat", '`x`.tns', 'a"b.pt', '$x.zip'])
    expect(await hintFor(name)).toContain(`FILE${name.slice(name.lastIndexOf('.'))}`)
  expect(await hintFor('a.xyz')).toBe('')
})

const has = (modules: string): boolean => spawnSync('python3', ['-c', `import ${modules}`]).status === 0

/** Types what the hint says, and reads what comes of it. */
async function converted(name: string, result: string, change = (c: string) => c) {
  const command = (await hintFor(join(folder, name))).replace('convert the file: ', '')
  const { status, stderr } = spawnSync('sh', ['-c', change(command)], { encoding: 'utf8' })
  expect([status, stderr]).toEqual([0, ''])
  expect(existsSync(join(folder, result))).toBe(true)
  return readTensor(join(folder, result))
}

test.skipIf(!has('numpy'))('the command for .tns', async () => {
  writeFileSync(join(folder, 't.tns'), '1 1 1 2.5\n3 2 1 -4\n')
  expect(elements(await converted('t.tns', 't.npz'))).toEqual(['0,0,0=2.5', '2,1,0=-4'])
})

test.skipIf(!has('scipy.io'))('the command for .mat', async () => {
  const made = spawnSync('python3', [
    '-c',
    `import scipy.io as s, scipy.sparse as p; s.savemat(${JSON.stringify(join(folder, 'm.mat'))}, {'A': p.csc_matrix([[0, 1.5], [2, 0]])})`,
  ])
  expect(made.status).toBe(0)
  const tensor = await converted('m.mat', 'm.mtx', (c) => c.replace("['NAME']", "['A']"))
  expect(elements(tensor)).toEqual(['0,1=1.5', '1,0=2'])
})

test('the command for .npy.gz', async () => {
  const array = Buffer.concat([
    Buffer.from(
      "\x93NUMPY\x01\x00\x46\x00{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }",
      'latin1',
    ),
  ])
  const header = Buffer.concat([array, Buffer.from(' '.repeat(80 - array.length))])
  const value = Buffer.alloc(8)
  value.writeDoubleLE(3)
  writeFileSync(join(folder, 'v.npy.gz'), gzipSync(Buffer.concat([header, value])))
  expect(await converted('v.npy.gz', 'v.npy')).toMatchObject({ values: Float64Array.of(3) })
})

test('a table that is a dense matrix', async () => {
  for (const text of ['1,2,3,4\n5,6,7,8\n', '0.5,2\n']) {
    writeFileSync(join(folder, 'd.csv'), text)
    const error = (await readTensor(join(folder, 'd.csv')).catch((e) => e)) as SptError
    expect(error.diagnostics[0]!.hint).toMatch(
      /^if the table is a dense matrix: python3 -c ".*d\.npy.*d\.csv/,
    )
  }
})
