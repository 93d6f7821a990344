class Context:
    @staticmethod
    def synchronize():
        pass
