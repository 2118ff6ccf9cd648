"""Python programs that begin in a process with imported modules, since importing torch takes seconds:

  PYTHON warm_python.py serve SOCKET MODULES    imports them, and forks a process for each request
  PYTHON warm_python.py run SOCKET PROGRAM      runs a program in such a process, as `PYTHON PROGRAM` would

`run` has the program's output and its exit code; SIGTERM goes on to the program, which is killed with `run`.
The variable LAUNCHER is the process that started `run`. The server ends at the end of its input.
"""
import json
import os
import signal
import socket
import sys


def run(path, program):
    request = {"program": program, "folder": os.getcwd(),
               "environment": {**os.environ, "LAUNCHER": str(os.getppid())}}
    with socket.socket(socket.AF_UNIX) as server:
        server.connect(path)
        socket.send_fds(server, [b"."], [1, 2])
        server.sendall(json.dumps(request).encode() + b"\n")
        signal.signal(signal.SIGTERM, lambda *_: server.sendall(b"."))
        with server.makefile("r") as answer:
            sys.exit(int(answer.readline() or 1))


def read_request(client):
    _, descriptors, _, _ = socket.recv_fds(client, 1, 2)
    with client.makefile("r") as stream:
        return descriptors, json.loads(stream.readline())


def run_program(descriptors, request):
    """In a process of its own, which it ends."""
    import atexit
    import runpy
    for place, descriptor in enumerate(descriptors, 1):
        os.dup2(descriptor, place)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    folders = os.environ.get("PYTHONPATH", "").split(":")
    sys.path[0:1] = [os.path.dirname(os.path.abspath(request["program"])), *filter(None, folders)]
    sys.argv = [request["program"]]
    code = 0
    try:
        runpy.run_path(request["program"], run_name="__main__")
    except SystemExit as error:
        code = error.code or 0
    except BaseException:
        code = 1
        try:
            sys.excepthook(*sys.exc_info())
        except SystemExit as error:
            code = error.code
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def attend(client):
    """In a process of its own, which it ends: starts the program, and watches both."""
    descriptors, request = read_request(client)
    child = os.fork()
    if child == 0:
        client.close()
        run_program(descriptors, request)
    watch = os.pidfd_open(child)
    import select
    while watch not in select.select([client, watch], [], [])[0]:
        asked = client.recv(1)
        os.kill(child, signal.SIGTERM if asked else signal.SIGKILL)
        if not asked:
            break
    _, status = os.waitpid(child, 0)
    try:
        client.sendall(f"{os.waitstatus_to_exitcode(status) % 256}\n".encode())
    except OSError:
        pass
    os._exit(0)


def serve(path, modules):
    for module in modules.split(","):
        __import__(module)
    if "torch" in modules:  # what its optimizers import at first
        parameter = sys.modules["torch"].nn.Parameter(sys.modules["torch"].zeros(1))
        sys.modules["torch"].optim.SGD([parameter], lr=0.1).zero_grad()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(path)
        server.listen()
        print("ready", flush=True)
        import select
        while True:
            ready, _, _ = select.select([server, sys.stdin], [], [])
            if sys.stdin in ready:
                return
            client, _ = server.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                server.close()
                attend(client)
            client.close()


if __name__ == "__main__":
    {"run": run, "serve": serve}[sys.argv[1]](*sys.argv[2:])
