"""Finds the tools and compiles: kernels to cubins, and the program that records launches."""
import glob
import os
import re
import shutil
import site
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

from sass_cubin import Cubin

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
GUARD = os.path.join(ROOT, "tests", "guard")


class Missing(Exception):
    """Something that is needed is not installed; the reason in one line."""


def find_tool(name):
    """On the PATH, in the toolkit, or from PyPI (nvidia-cuda-cuobjdump, nvidia-cuda-nvdisasm)."""
    places = [os.path.join(x, "bin") for x in (os.environ.get("CUDA_HOME", ""), "/usr/local/cuda") if x]
    for folder in site.getsitepackages() + [site.getusersitepackages()] + sys.path:
        places += glob.glob(os.path.join(folder, "nvidia", "*", "bin"))
    found = shutil.which(name) or shutil.which(name, path=os.pathsep.join(places))
    if not found:
        raise Missing("%s is neither in a CUDA toolkit nor from PyPI (tools/dev/sass-guard/requirements.txt)" % name)
    return found


class Tools:
    def __init__(self):
        self.nvcc, self.cuobjdump = find_tool("nvcc"), find_tool("cuobjdump")
        nvdisasm = os.path.dirname(find_tool("nvdisasm"))  # cuobjdump calls it
        os.environ["PATH"] = nvdisasm + os.pathsep + os.environ["PATH"]
        text = subprocess.run([self.nvcc, "--version"], capture_output=True, text=True, check=True).stdout
        self.version = text.split(", V")[1].split()[0]


def own_flags(source):
    return ["-fmad=false"] if re.search(r"kernels_(preprocess|scores)\.cu$", source) else []  # as in gpu/CMakeLists.txt


class Builder:
    """Compiles the kernels of a tree; keeps what it compiled in a folder."""

    def __init__(self, tree, folder, tools):
        self.tree, self.folder, self.tools, self.cubins = tree, folder, tools, {}

    def kernel_files(self):
        return sorted(os.path.basename(x)[:-3] for x in glob.glob(os.path.join(self.tree, "gpu", "*.cu")))

    def source(self, name):
        own = os.path.join(GUARD, name + ".cu")
        return own if os.path.exists(own) else os.path.join(self.tree, "gpu", name + ".cu")

    def compile(self, wanted):
        """wanted: pairs of a name and an architecture; as many at a time as there are cores."""
        wanted = [x for x in dict.fromkeys(wanted) if x not in self.cubins]
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            for pair, cubin in zip(wanted, pool.map(lambda x: self._compile(*x), wanted)):
                self.cubins[pair] = cubin

    def _newest(self):
        files = [x for pattern in ("gpu/*", "src/core/include/ndt/*") for x in glob.glob(os.path.join(self.tree, pattern))]
        return max(os.path.getmtime(x) for x in files + glob.glob(os.path.join(GUARD, "*.cu")))

    def _compile(self, name, arch):
        source, out = self.source(name), os.path.join(self.folder, "%s.%s.cubin" % (name, arch))
        log = out + ".log"
        if not os.path.exists(log) or os.path.getmtime(log) < self._newest():
            self._run_nvcc(source, arch, out, log)
        cubin = Cubin(out, self.tools.cuobjdump, arch)
        with open(log, encoding="utf-8") as file:
            cubin.set_spills(file.read())
        return cubin

    def _run_nvcc(self, source, arch, out, log):
        command = [self.tools.nvcc, "-O3", "-std=c++17", *own_flags(source), "-lineinfo", "-Xptxas", "-v", "-gencode",
                   "arch=compute_%s,code=sm_%s" % (arch, arch), "-I" + os.path.join(self.tree, "gpu"),
                   "-I" + os.path.join(self.tree, "src", "core", "include"), "-cubin", "-o", out, source]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError("nvcc cannot compile %s for sm_%s:\n%s" % (source, arch, done.stderr))
        with open(log, "w", encoding="utf-8") as file:
            file.write(done.stderr + done.stdout)

    def get(self, name, arch):
        self.compile([(name, arch)])
        return self.cubins[name, arch]

    def owner(self, kernel, arch):
        """The cubin that holds a kernel."""
        for name in self.kernel_files():
            with open(self.source(name), encoding="utf-8") as file:
                if kernel in file.read():
                    cubin = self.get(name, arch)
                    if kernel in cubin.kernels:
                        return cubin
        raise RuntimeError("no file of %s/gpu has a kernel %s" % (self.tree, kernel))


def host_program(builder, name):
    """Compiles tests/guard/NAME.c against the headers of the tree."""
    out = os.path.join(builder.folder, name)
    subprocess.run(["cc", "-O1", "-std=gnu17", "-ffp-contract=off", "-I" +
                    os.path.join(builder.tree, "src", "core", "include"), os.path.join(GUARD, name + ".c"), "-o", out,
                    "-lm"], check=True)
    return out


def launches_program(builder):
    """guard_launches, linked with the emulated backend of the tree."""
    folder = os.path.join(builder.folder, "launches")
    log = os.path.join(builder.folder, "launches.log")
    if not shutil.which("cmake"):
        raise Missing("cmake is not installed")
    with open(log, "w", encoding="utf-8") as file:
        for command in (["cmake", "-S", builder.tree, "-B", folder, "-DCMAKE_BUILD_TYPE=Release", "-DNDT_CORE_ONLY=ON",
                         "-DNDT_CUDA=OFF", "-DNDT_PEER_PCL=OFF",
                         "-DCMAKE_PROJECT_INCLUDE=" + os.path.join(GUARD, "guard_launches.cmake")],
                        ["cmake", "--build", folder, "--parallel", str(os.cpu_count()), "--target", "guard_launches"]):
            if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT).returncode != 0:
                file.flush()
                with open(log, encoding="utf-8") as text:
                    raise RuntimeError("guard_launches cannot be built:\n" + "".join(text.readlines()[-30:]))
    return os.path.join(folder, "bin", "guard_launches")
