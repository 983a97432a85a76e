import { existsSync, readFileSync } from 'node:fs'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { isMissing } from '../../src/ast/diagnostics/optional-packages.ts'
import { findSwiftShader, readTar } from '../../src/runtime/webgpu/swiftshader.ts'
import { property } from '../support/property.ts'

/** A ustar archive, as far as the reader looks at one. */
function tarOf(files: readonly { name: string; type: string; bytes: Uint8Array }[]): Uint8Array {
  const blocks = files.flatMap(({ name, type, bytes }) => {
    const header = new Uint8Array(512)
    const put = (at: number, text: string) => header.set(new TextEncoder().encode(text), at)
    put(0, name)
    put(124, bytes.length.toString(8).padStart(11, '0'))
    put(156, type)
    const body = new Uint8Array(Math.ceil(bytes.length / 512) * 512)
    body.set(bytes)
    return [header, body]
  })
  return Uint8Array.from([...blocks, new Uint8Array(1024)].flatMap((b) => [...b]))
}

const file = fc.record({
  name: fc.stringMatching(/^[a-z][a-z0-9._-]{0,60}$/),
  type: fc.constantFrom('0', '\0', '5', 'x'),
  bytes: fc.uint8Array({ maxLength: 1200 }),
})

property([fc.uniqueArray(file, { selector: (f) => f.name, maxLength: 5 })])(
  'an archive yields its regular files',
  (files) => {
    const regular = files.filter((f) => f.type === '0' || f.type === '\0')
    expect([...readTar(tarOf(files))]).toEqual(regular.map((f) => [f.name, f.bytes]))
  },
)

test('leading folders of a name are removed', () => {
  expect([...readTar(tarOf([{ name: 'lib/x/a.so', type: '0', bytes: Uint8Array.of(1) }])).keys()]).toEqual([
    'a.so',
  ])
})

test('a damaged archive is an error', () => {
  const whole = tarOf([{ name: 'a', type: '0', bytes: new Uint8Array(600) }])
  expect(() => readTar(whole.subarray(0, 1000))).toThrow('damaged')
  whole.set(new TextEncoder().encode('no number'), 124)
  expect(() => readTar(whole)).toThrow('damaged')
})

test('the packaged driver is unpacked, or its absence has a reason and a hint', () => {
  const found = findSwiftShader()
  if (isMissing(found)) expect([found.reason, found.hint].every((s) => s.length > 0)).toBe(true)
  else {
    expect(existsSync(found.loader)).toBe(true)
    expect(JSON.parse(readFileSync(found.icd, 'utf8')).ICD.library_path).toBe('./libvk_swiftshader.so')
  }
})
