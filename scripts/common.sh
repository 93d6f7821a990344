# Shared by quickstart and test: installs what ergotune is built from and builds it. Debian 12 and Ubuntu 24.04.
# Sourced, not run; expects to stand in the repository's root.

say() { printf '\n== %s\n' "$*"; }

packages="g++ gcc gfortran cmake ninja-build ccache pkg-config ca-certificates libcli11-dev libfmt-dev
  nlohmann-json3-dev libsimdjson-dev libtomlplusplus-dev libsqlite3-dev libeigen3-dev zlib1g-dev libxxhash-dev
  libboost-dev libgtest-dev libgmock-dev librapidcheck-dev libevent-dev pocl-opencl-icd ocl-icd-libopencl1"
# hiprtc, for the tests that compile HIP without a GPU (5 MB to fetch); Slurm, for the test of a session over two nodes (9 MB);
# a browser for those of the page (100 MB); doxygen, for the C++ part of the documentation site
test_packages="libamdhip64-5 slurm-wlm munge openmpi-bin chromium-headless-shell doxygen"
python_packages="python3 python3-dev python3-venv pybind11-dev"

# Installs the packages that are missing. Uses apt-get directly as root and through sudo otherwise (this script may:
# the tool itself never does).
install_packages() {
  local missing=""
  for package in "$@"; do
    dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
  done
  [ -z "$missing" ] && return 0
  if ! command -v apt-get >/dev/null; then
    echo "Please install these packages (named as on Debian 12):$missing" >&2
    return 2
  fi
  say "Installing packages:$missing"
  local root=""
  [ "$(id -u)" = 0 ] || root="sudo"
  $root apt-get update -qq || true
  DEBIAN_FRONTEND=noninteractive $root apt-get install -y -qq --no-install-recommends $missing >/dev/null
}

# make_venv FOLDER REQUIREMENTS: a virtual environment with these packages, made anew when the list has changed.
make_venv() {
  cmp -s "$2" "$1/requirements.txt" && return 0
  say "Python packages of $2"
  python3 -m venv "$1" && "$1/bin/pip" install -q -r "$2" && cp "$2" "$1/requirements.txt"
}

# build PRESET [cmake options...]; $targets: only these
build() {
  local preset=$1
  shift
  say "Building ($preset)"
  cmake --preset "$preset" "$@" >/dev/null
  cmake --build --preset "$preset" ${targets:+--target $targets}
}
