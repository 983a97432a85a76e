import { expect, test } from 'vitest'
import { versionFault } from '../../scripts/api/semantic-version.mjs'

const CHANGELOG = '# Changelog\n\n## 0.2.0\n\n## 0.1.1\n\n## 1.3.0\n\n## 1.2.1\n\n## 2.0.0\n'
const fault = (old: string, version: string, released: string, report: string) =>
  versionFault(old, released, version, report, CHANGELOG)

test('an API that did not change needs no new version', () => {
  expect(fault('0.1.0', '0.1.0', 'a\nb', 'b\na')).toBe(undefined)
})

test.each([
  // a line went: a major version, below 1.0 a minor one
  ['0.1.0', '0.1.1', 'a\nb', 'a', /new minor version is needed, because declarations changed or went: b/],
  ['0.1.0', '0.2.0', 'a\nb', 'a', undefined],
  ['1.2.0', '1.3.0', 'a\nb', 'a', /new major version/],
  ['1.2.0', '2.0.0', 'a\nb', 'a', undefined],
  // a line came: a minor version, below 1.0 a patch version
  ['0.1.0', '0.1.0', 'a', 'a\nb', /new patch version is needed, because the API grew/],
  ['0.1.0', '0.1.1', 'a', 'a\nb', undefined],
  ['1.2.0', '1.2.1', 'a', 'a\nb', /new minor version/],
  ['1.2.0', '1.3.0', 'a', 'a\nb', undefined],
  ['1.2.0', '1.1.0', 'a', 'a\nb', /new minor version/],
  ['0.1.0', '0.3.0', 'a', 'b', /no section for 0\.3\.0/],
] as const)('%s to %s', (old, version, released, report, expected) => {
  const found = fault(old, version, released, report)
  if (expected === undefined) expect(found).toBe(undefined)
  else expect(found).toMatch(expected)
})
