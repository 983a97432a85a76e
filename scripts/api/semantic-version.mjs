const parts = (version) => version.split('.').map(Number)
const lines = (text) => new Set(text.split('\n').map((line) => line.trim()))

/**
 * Why `version`, with the API `report`, must not follow the released version `old` with the API `released`; undefined if it
 * may. A line that is gone breaks programs: that needs a new major version, below 1.0 a new minor one. An API that only grew
 * needs a new minor version, below 1.0 a new patch version. The changelog has a section for the version.
 */
export function versionFault(old, released, version, report, changelog) {
  const before = lines(released)
  const after = lines(report)
  const gone = [...before].filter((line) => !after.has(line))
  const grown = [...after].some((line) => !before.has(line))
  if (gone.length === 0 && !grown) return undefined
  const major = parts(old)[0] > 0 ? 0 : 1
  const needed = gone.length > 0 ? major : major + 1
  const from = parts(old)
  const to = parts(version)
  const first = to.findIndex((n, k) => n !== from[k])
  const enough = first !== -1 && first <= needed && to[first] > from[first]
  if (!enough) {
    const word = ['major', 'minor', 'patch'][needed]
    const why =
      gone.length > 0 ? `declarations changed or went: ${gone.slice(0, 5).join(' … ')}` : 'the API grew'
    return `version ${version} after ${old}: a new ${word} version is needed, because ${why}`
  }
  if (!changelog.split('\n').some((line) => line.startsWith(`## ${version}`)))
    return `CHANGELOG.md has no section for ${version}`
  return undefined
}
