/** Without the optional packages: each error names the package and the command that installs it. */
import { readFileSync } from 'node:fs'
import { expect, test, vi } from 'vitest'
import { SptError } from '../../src/ast/diagnostics/diagnostic.ts'
import { createCudaDevice, reportCuda } from '../../src/runtime/cuda/index.ts'
import { createNodeWebGpu, reportWebGpu } from '../../src/runtime/webgpu/node.ts'
import { openRecords } from '../../src/search/records/index.ts'

const { missing } = vi.hoisted(() => ({
  missing: () => {
    throw new Error('no such package')
  },
}))
vi.mock('webgpu', missing)
vi.mock('koffi', missing)
vi.mock('libsql', missing)

test.each([
  ['device/absent', 'webgpu', 'webgpu', createNodeWebGpu],
  ['device/absent', 'koffi', 'koffi', () => createCudaDevice()],
  ['records/unavailable', 'libsql', 'libsql', () => openRecords('/nowhere/records.db')],
])('%s of %s', async (code, message, packages, open) => {
  const error = await Promise.resolve(open()).catch((e: unknown) => e)
  expect(error).toBeInstanceOf(SptError)
  expect((error as SptError).diagnostics[0]).toMatchObject({
    code,
    message: expect.stringContaining(`${message}, which cannot be loaded`),
    hint: `npm i ${packages}`,
  })
})

test('the reports of `spt doctor` have the same hints', async () => {
  expect([(await reportWebGpu()).hint, (await reportCuda()).hint]).toEqual(['npm i webgpu', 'npm i koffi'])
})

test('the package declares them optional, and installs nothing else', () => {
  const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta, scripts } = JSON.parse(
    readFileSync('package.json', 'utf8'),
  )
  expect([dependencies, optionalDependencies]).toEqual([undefined, undefined])
  expect(Object.keys(peerDependencies)).toEqual(['koffi', 'libsql', 'unplugin', 'webgpu'])
  for (const name of Object.keys(peerDependencies))
    expect(peerDependenciesMeta[name]).toEqual({ optional: true })
  // npm warns about these in projects that install the package.
  for (const script of ['preinstall', 'install', 'postinstall', 'prepare'])
    expect(scripts).not.toHaveProperty(script)
})
